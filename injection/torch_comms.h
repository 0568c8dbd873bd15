/*
 * torch_comms.h - what torch.distributed tells of a collective: its operators named
 * TORCH_COMMS_NAME run while the thread has a torch::ParamCommsDebugInfo.
 */
#ifndef INJ_TORCH_COMMS_H
#define INJ_TORCH_COMMS_H

#include "base.h"

#define TORCH_COMMS_NAME "record_param_comms" /* at::kParamCommsCallName */

/* Find what is needed in torch's library (of dlopen()). Without it nothing is told. */
void torch_comms_find(void *library);

/* Such an operator begins, at depth: write what the thread has as an event. */
void torch_comms_put(uint32_t depth);

#endif
