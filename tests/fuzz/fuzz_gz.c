/*
 * fuzz_gz.c - the gzip layer: it ends, stays in its buffer and counts what it gives.
 */
#include "base.h"
#include "gz_reader.h"

#include <stdlib.h>

/* A bomb only costs time; not here. */
#define OUTPUT_MAX (UINT64_C(16) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cap = size ? 1 + data[0] * (size_t)256 : 1;
	char *buf = malloc(cap);
	struct gt_gz_reader *reader;
	uint64_t total = 0;
	struct gt_err err;
	ssize_t n;

	if (!buf || gt_gz_open_mem(&reader, data, size))
		abort();
	while ((n = gt_gz_read(reader, buf, cap, &err)) > 0 && total < OUTPUT_MAX) {
		if ((size_t)n > cap)
			abort();
		total += (uint64_t)n;
	}
	if (n < 0 || gt_gz_status(reader)->out_bytes < total ||
	    gt_gz_status(reader)->in_bytes != size)
		abort();
	gt_gz_close(reader);
	free(buf);
	return 0;
}
