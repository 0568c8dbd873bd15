/* The sizes of activity records, as the loaded CUPTI has them. */
#include "cupti_api.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Sizes of a made-up library, by kind; 0: it does not know the kind. */
static uint32_t fake_bytes[GT_KIND_MAX];

static CUptiResult CUPTIAPI fake_next_record(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	uint8_t *next = buffer;
	uint32_t kind;

	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		next = (uint8_t *)*record + fake_bytes[kind];
	}
	if (next + sizeof(kind) > buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	memcpy(&kind, next, sizeof(kind));
	if (kind >= GT_KIND_MAX || !fake_bytes[kind])
		return CUPTI_ERROR_INVALID_KIND;
	*record = (CUpti_Activity *)next;
	return CUPTI_SUCCESS;
}

static void of_any_library(void **state)
{
	uint16_t bytes[GT_KIND_MAX];

	(void)state;
	fake_bytes[CUPTI_ACTIVITY_KIND_RUNTIME] = 40;
	fake_bytes[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = 4088;
	fake_bytes[63] = 8;
	inj_cupti_probe_records(fake_next_record, bytes);
	for (int kind = 0; kind < GT_KIND_MAX; kind++)
		assert_int_equal(bytes[kind], fake_bytes[kind]);
	/* longer than the probe can see */
	fake_bytes[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = 4096;
	inj_cupti_probe_records(fake_next_record, bytes);
	assert_int_equal(bytes[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], 0);
}

/* A real library of the headers' version or a later one: records only grow. */
static void of_the_real_one(void **state)
{
	static const struct {
		CUpti_ActivityKind kind;
		size_t bytes;
	} known[] = {
		{ CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10) },
		{ CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6) },
		{ CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4) },
		{ CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4) },
		{ CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI) },
		{ CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI) },
		{ CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(CUpti_ActivityGraphTrace2) },
	};
	void *handle = dlopen("/usr/local/cuda/lib/libcupti.so.13", RTLD_NOW | RTLD_NODELETE);
	uint16_t bytes[GT_KIND_MAX];

	(void)state;
	if (!handle)
		handle = dlopen("/usr/local/cuda/lib64/libcupti.so.13", RTLD_NOW | RTLD_NODELETE);
	if (!handle)
		skip();
	inj_cupti_probe_records((__typeof__(cuptiActivityGetNextRecord) *)dlsym(
					handle, "cuptiActivityGetNextRecord"),
				bytes);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		assert_in_range(bytes[known[i].kind], known[i].bytes, known[i].bytes + 64);
	assert_int_equal(bytes[0], 0);
	assert_int_equal(bytes[GT_KIND_MAX - 1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_any_library),
		cmocka_unit_test(of_the_real_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
