/*
 * torch_memory.h - what torch's allocators do, as events.
 */
#ifndef INJ_TORCH_MEMORY_H
#define INJ_TORCH_MEMORY_H

#include "base.h"

/*
 * Torch was imported: have its allocators tell us, when the user wants it. true: call
 * torch.empty(1, device="cpu") on this thread, and then torch_memory_begin().
 */
bool torch_memory_test(void);

/* Was that seen? at_once: what is recorded before the control thread knows of it counts, too. */
void torch_memory_begin(bool at_once);

/* Can there be such events? */
bool torch_memory_known(void);

/* From the control thread, once a turn: write events, or not. Also says, once, what is missing. */
void inj_memory_follow(bool wanted);

#endif
