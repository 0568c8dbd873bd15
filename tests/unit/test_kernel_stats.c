/*
 * test_kernel_stats.c - how kernels were launched: their operators, configurations and occupancy.
 */
#include "base.h"
#include "kernel_stats.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENT(cat, name, ts, dur, args)                                                          \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":9,\"ts\":" ts \
	",\"dur\":" dur ",\"args\":{" args "}},\n"
#define ID(id)          "\"External id\":" id
#define CORRELATION(id) ",\"correlation\":" id
#define SHAPE(grid, regs) \
	",\"grid\":[" grid "],\"block\":[128, 1, 1],\"registers per thread\":" regs
#define OCCUPANCY(pct) ",\"est. achieved occupancy %\":" pct

static struct gt_summary *load(const struct gt_buf *text)
{
	const struct gt_summary_options options = { .by = GT_SUMMARY_BY_KERNEL };
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;

	assert_false(text->failed);
	assert_int_equal(gt_gz_open_mem(&gz, text->data, text->len), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "trace", &options, &err), 0);
	gt_gz_close(gz);
	return summary;
}

static struct gt_summary *load_events(const char *events)
{
	struct gt_buf text = { 0 };
	struct gt_summary *summary;

	gt_buf_text(&text, "[");
	gt_buf_text(&text, events);
	gt_buf_text(&text, "{}]");
	summary = load(&text);
	gt_buf_release(&text);
	return summary;
}

static const struct gt_kernel_stat *stat_of(const struct gt_summary *summary, const char *name)
{
	for (uint32_t i = 0; i < summary->kernels.names.count; i++) {
		if (gt_str_equal(gt_interned(&summary->kernels.names, i), gt_str_of(name)))
			return gt_kernel_stat_of(&summary->kernel_stats, i);
	}
	fail_msg("no kernel %s", name);
	return NULL;
}

static void assert_op(const struct gt_summary *summary, const char *kernel, const char *op,
		      uint64_t ops)
{
	const struct gt_kernel_stat *stat = stat_of(summary, kernel);
	struct gt_str got = gt_kernel_op_of(&summary->kernel_stats, stat);

	assert_int_equal(got.len, strlen(op));
	if (got.len)
		assert_memory_equal(got.ptr, op, got.len);
	assert_int_equal(stat->ops, ops);
}

static void test_operators(void **state)
{
	struct gt_summary *summary = load_events(
		/* clang-format off */
		EVENT("user_annotation", "ProfilerStep#1", "0", "100", ID("90"))
		EVENT("cpu_op", "outer", "1", "50", ID("1"))
		EVENT("cpu_op", "inner", "2", "20", ID("2"))
		EVENT("cuda_runtime", "cudaLaunchKernel", "3", "1", ID("2") CORRELATION("71"))
		/* no operator has this External id: it is the correlation */
		EVENT("cuda_runtime", "cudaLaunchKernel", "30", "1", ID("72") CORRELATION("72"))
		EVENT("cuda_runtime", "cudaLaunchKernel", "60", "1", "\"correlation\":73")
		/* two calls with one correlation, from two operators */
		EVENT("cuda_runtime", "cudaLaunchKernel", "4", "1", "\"correlation\":74")
		EVENT("cuda_runtime", "cudaLaunchKernel", "31", "1", "\"correlation\":74")
		/* 5 ns in inner, 8 in outer: 3 by its External id, 5 by the call */
		EVENT("kernel", "both", "100", "0.005", ID("2") CORRELATION("71"))
		EVENT("kernel", "both", "101", "0.003", ID("1") CORRELATION("99"))
		EVENT("kernel", "both", "102", "0.005", ID("72") CORRELATION("72"))
		EVENT("kernel", "step", "103", "1", ID("73") CORRELATION("73"))
		EVENT("kernel", "ambiguous", "104", "1", ID("74") CORRELATION("74"))
		EVENT("kernel", "nobody", "105", "1", ID("98") CORRELATION("98"))
		EVENT("kernel", "no ids", "106", "1", ""));
	/* clang-format on */

	(void)state;
	assert_op(summary, "both", "outer", 2);
	assert_op(summary, "step", "ProfilerStep*", 1);
	assert_op(summary, "ambiguous", "", 0);
	assert_op(summary, "nobody", "", 0);
	assert_op(summary, "no ids", "", 0);
	gt_summary_free(summary);
}

static void test_configs(void **state)
{
	/* clang-format off */
	struct gt_summary *summary = load_events(
		EVENT("kernel", "k", "0", "3", ID("1") SHAPE("2, 3, 4", "32") ",\"shared memory\":512"
		      OCCUPANCY("10"))
		EVENT("kernel", "k", "10", "2", ID("1") SHAPE("5,1,1", "40") OCCUPANCY("40.5"))
		EVENT("kernel", "k", "20", "2", ID("1") SHAPE("5,1,1", "40"))
		EVENT("kernel", "k", "30", "0", ID("1") SHAPE("5,1,1", "41") OCCUPANCY("99"))
		EVENT("kernel", "old", "40", "1", "\"theoretical occupancy %\":50,\"grid\":[1,2]")
		EVENT("kernel", "odd", "50", "1", "\"grid\":[-1,2,3],\"block\":[4294967295,1,1],"
		      "\"registers per thread\":\"many\",\"shared memory\":1e30")
		EVENT("kernel", "bare", "60", "1", ""));
	/* clang-format on */
	const struct gt_kernel_stat *stat = stat_of(summary, "k");
	struct gt_kernel_config config = gt_kernel_config_of(&summary->kernel_stats, stat);

	(void)state;
	assert_int_equal(stat->configs, 3);
	assert_false(stat->more_configs);
	assert_int_equal(config.grid[0], 5);
	assert_int_equal(config.grid[1], 1);
	assert_int_equal(config.block[0], 128);
	assert_int_equal(config.registers, 40);
	assert_int_equal(config.shared_bytes, GT_KERNEL_UNKNOWN);
	/* 3 us of 10, 2 us of 40.5, and 0 ns, which count as 1, of 99 */
	assert_true(stat->occupancy_ns == 5001);
	assert_true(stat->occupancy_sum == 3000 * 10 + 2000 * 40.5 + 99);

	stat = stat_of(summary, "old");
	assert_true(stat->occupancy_sum == 50 * stat->occupancy_ns);
	assert_int_equal(stat->configs, 0);
	assert_int_equal(stat_of(summary, "odd")->configs, 0);
	assert_true(stat_of(summary, "bare")->occupancy_ns == 0);
	config = gt_kernel_config_of(&summary->kernel_stats, stat_of(summary, "odd"));
	assert_int_equal(config.grid[0], GT_KERNEL_UNKNOWN);
	assert_int_equal(config.block[0], GT_KERNEL_UNKNOWN);
	assert_int_equal(config.shared_bytes, GT_KERNEL_UNKNOWN);
	gt_summary_free(summary);
}

/* However many grids a file has, a bounded number is kept, and that there were more is known. */
static void test_many_configs(void **state)
{
	struct gt_buf text = { 0 };
	struct gt_summary *summary;
	const struct gt_kernel_stat *stat;

	(void)state;
	gt_buf_text(&text, "[");
	for (unsigned int i = 0; i < GT_KERNEL_CONFIGS_MAX + 10; i++)
		gt_buf_printf(&text,
			      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,"
			      "\"ts\":%u,\"dur\":1,\"args\":{\"grid\":[%u,1,1]}},\n",
			      i, i);
	gt_buf_text(&text, "{}]");
	summary = load(&text);
	stat = stat_of(summary, "k");
	assert_int_equal(stat->configs, GT_KERNEL_CONFIGS_MAX);
	assert_true(stat->more_configs);
	assert_int_equal(summary->kernel_stats.configs.count, GT_KERNEL_CONFIGS_MAX);
	gt_summary_free(summary);
	gt_buf_release(&text);
}

static void test_only_when_asked(void **state)
{
	static const char text[] =
		"[" EVENT("kernel", "k", "0", "1", ID("1") SHAPE("1,1,1", "3")) "{}]";
	const struct gt_summary_options all = { .with_launches = true };
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(gt_gz_open_mem(&gz, text, sizeof(text) - 1), 0);
		assert_int_equal(gt_summary_read(&summary, gz, "trace", i ? &all : NULL, &err), 0);
		gt_gz_close(gz);
		assert_int_equal(summary->kernel_stats.configs.count, i);
		gt_summary_free(summary);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operators),
		cmocka_unit_test(test_configs),
		cmocka_unit_test(test_many_configs),
		cmocka_unit_test(test_only_when_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
