/*
 * fuzz_demangle.c - names of the target: bounded text, bounded time, whatever they are.
 */
#include "base.h"
#include "demangle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_buf name = { 0 }, plain = { 0 };

	gt_buf_text(&name, "_Z");
	gt_buf_append(&name, data, size);
	if (gt_demangle(gt_buf_str(&name), &plain) && memchr(plain.data, 0, plain.len))
		abort();
	if (plain.len > (size_t)1 << 20)
		abort();
	gt_buf_release(&plain);
	gt_buf_release(&name);
	return 0;
}
