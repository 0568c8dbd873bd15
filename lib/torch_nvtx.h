/*
 * torch_nvtx.h - torch's operators as NVTX ranges: what its NVTX profiler, torch.autograd's
 * emit_nvtx(), calls them. Source: getNvtxStr() in torch/csrc/profiler/util.cpp of PyTorch 1.11 on.
 */
#ifndef GT_TORCH_NVTX_H
#define GT_TORCH_NVTX_H

#include "str.h"

/*
 * Is this "NAME, op_id = M" or "NAME, seq = N, op_id = M"? Cuts text down to NAME; *ret_sequence is
 * N, or -1. Else nothing is changed.
 */
bool gt_torch_nvtx_parse(struct gt_str *text, int64_t *ret_sequence);

#endif
