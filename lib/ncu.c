/*
 * ncu.c - see ncu.h. The options are those of the Nsight Compute CLI documentation.
 */
#include "base.h"
#include "json_reader.h"
#include "kernel_name.h"
#include "ncu.h"

static void put_command(struct gt_buf *out, struct gt_str base_name, uint64_t skip, uint64_t count)
{
	gt_buf_text(out, "ncu --kernel-name 'regex:^");
	for (size_t i = 0; i < base_name.len; i++) {
		char c = base_name.ptr[i];

		/* What is not ASCII may steer a terminal: a run of it is any characters. */
		if ((unsigned char)c >= 0x80) {
			if (!i || (unsigned char)base_name.ptr[i - 1] < 0x80)
				gt_buf_text(out, ".+");
			continue;
		}
		if (strchr(".*+?()[]{}|^$\\/", c) && c)
			gt_buf_byte(out, '\\');
		/* A quote or a control character is any character. */
		gt_buf_byte(out, c == '\'' || (unsigned char)c < ' ' || c == 0x7f ? '.' : c);
	}
	gt_buf_text(out, "$'");
	if (skip)
		gt_buf_printf(out, " --launch-skip %llu", (unsigned long long)skip);
	gt_buf_printf(out, " --launch-count %llu --set full -o profile COMMAND\n",
		      (unsigned long long)count);
}

/* The kernel of this name, or the one with it in its name that took longest; -1: none. */
static int64_t find_kernel(const struct gt_summary_table *kernels, struct gt_str wanted)
{
	int64_t best = -1;

	for (uint32_t i = 0; i < kernels->names.count; i++) {
		struct gt_str name = gt_interned(&kernels->names, i);

		if (gt_str_equal(name, wanted))
			return i;
		if (gt_str_has(name, wanted) &&
		    (best < 0 || kernels->stats[i].total_ns > kernels->stats[best].total_ns))
			best = i;
	}
	return best;
}

/* Launches a step of all kernels with this base name; 0: it is not the same in all steps. */
static uint64_t launches_a_step(const struct gt_summary *summary, struct gt_str base_name)
{
	const struct gt_summary_table *kernels = &summary->kernels;
	uint64_t calls = 0;

	for (uint32_t i = 0; i < kernels->names.count; i++) {
		if (gt_str_equal(gt_kernel_base_name(gt_interned(&kernels->names, i)), base_name))
			calls += kernels->stats[i].calls;
	}
	return summary->step_count && calls % summary->step_count == 0 ? calls / summary->step_count
								       : 0;
}

/* How many steps the program took before the first one of the trace. */
static uint64_t steps_before(const struct gt_summary *summary)
{
	const struct gt_str prefix = GT_STR("ProfilerStep#");
	struct gt_str name = gt_interned(&summary->step_names, summary->steps[0].name);
	int64_t number;

	name.ptr += prefix.len;
	name.len -= prefix.len;
	return gt_json_int(name, &number) && number > 0 && number <= INT32_MAX ? (uint64_t)number
									       : 0;
}

int gt_ncu_put(const struct gt_summary *summary, struct gt_str kernel, struct gt_buf *out)
{
	int64_t number = kernel.len ? find_kernel(&summary->kernels, kernel) : -1;
	uint64_t a_step, skip = 0;
	struct gt_str base_name;

	if (number < 0)
		return -ENOENT;
	base_name = gt_kernel_base_name(gt_interned(&summary->kernels.names, (uint32_t)number));
	a_step = launches_a_step(summary, base_name);
	if (a_step)
		skip = steps_before(summary) * a_step;
	put_command(out, base_name, skip, GT_MAX(a_step, 1));
	return out->failed ? -ENOMEM : 0;
}
