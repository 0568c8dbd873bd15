/*
 * trace_rig.h - a trace is written, then read back: for the tests of the trace writer.
 */
#ifndef TRACE_RIG_H
#define TRACE_RIG_H

#include "base.h"
#include "buf.h"
#include "random.h"
#include "trace_reader.h"
#include "trace_writer.h"
#include "wire.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE   UINT64_C(1790857026000000000)
#define PID    4321u
#define THREAD 4322u

static char dir[] = "/tmp/gtrace-test-XXXXXX";
static char path[sizeof(dir) + 32];

static const struct gt_msg_device h100 = {
	.id = 0,
	.compute_major = 9,
	.max_threads_per_block = 1024,
	.max_threads_per_multiprocessor = 2048,
	.regs_per_block = 65536,
	.regs_per_multiprocessor = 65536,
	.warp_size = 32,
	.num_sms = 132,
	.total_global_mem = UINT64_C(85017493504),
	.shared_mem_per_block = 49152,
	.shared_mem_per_block_optin = 232448,
	.shared_mem_per_multiprocessor = 233472,
	.name = "NVIDIA H100 80GB HBM3",
};

static const struct gt_trace_health healthy = {
	.complete = true,
	.step_before_ms = NAN,
	.step_active_ms = NAN,
	.step_after_ms = NAN,
};

/* ---- writing ---- */

static struct gt_trace *create(const struct gt_trace_meta *meta)
{
	static const struct gt_trace_meta usual = {
		.pid = PID,
		.rank = 1,
		.world_size = 4,
		.cycle = 1,
		.rank_source = "RANK",
		.step_source = "api",
		.comm = "python3",
		.command = "python3 train.py --lr \"1e-3\"",
		.devices = &h100,
		.device_count = 1,
	};
	struct gt_trace *trace;
	struct gt_err err = { 0 };

	assert_int_equal(
		gt_trace_create(&trace, path, GT_TRACE_OVERWRITE, BASE, meta ? meta : &usual, &err),
		0);
	return trace;
}

static void finish(struct gt_trace *trace)
{
	struct gt_err err = { 0 };

	assert_int_equal(gt_trace_close(trace, &healthy, &err), 0);
}

static struct gt_trace_call make_call(uint32_t correlation, uint64_t start)
{
	return (struct gt_trace_call){
		.tid = THREAD,
		.start_ns = BASE + start,
		.end_ns = BASE + start + 4000,
		.correlation = correlation,
		.cbid = 211,
		.runtime = true,
		.launches = true,
		.name = GT_STR("cudaLaunchKernel"),
	};
}

static struct gt_gpu_op make_kernel(uint32_t correlation, uint64_t start, uint64_t end)
{
	return (struct gt_gpu_op){
		.kind = GT_GPU_KERNEL,
		.start_ns = BASE + start,
		.end_ns = BASE + end,
		.context = 1,
		.stream = 7,
		.correlation = correlation,
		.grid = { 128, 1, 1 },
		.block = { 128, 1, 1 },
		.registers_per_thread = 34,
	};
}

static void add_range(struct gt_trace *trace, const char *name, bool is_step, uint64_t id,
		      uint64_t start, uint64_t end)
{
	const struct gt_trace_range range = {
		.tid = THREAD,
		.is_step = is_step,
		.start_ns = BASE + start,
		.end_ns = BASE + end,
		.name = gt_str_of(name),
		.external_id = id,
	};

	assert_int_equal(gt_trace_range(trace, &range), 0);
}

/* ---- reading ---- */

struct event {
	char phase;
	enum gt_trace_cat cat;
	int64_t ts;
	int64_t dur;
	int64_t pid;
	int64_t tid;
	char *name;
	size_t name_len;
	char *text;
	char *args;
};

static struct {
	struct event *events;
	size_t count;
	size_t cap;
	struct gt_buf members; /* key=value lines of the top level */
} got;

static char *copy(struct gt_str s)
{
	char *p = malloc(s.len + 1);

	assert_non_null(p);
	memcpy(p, s.len ? s.ptr : "", s.len);
	p[s.len] = '\0';
	return p;
}

static int on_event(void *context, const struct gt_trace_event *event)
{
	(void)context;
	if (got.count == got.cap) {
		got.cap = got.cap ? 2 * got.cap : 256;
		got.events = realloc(got.events, got.cap * sizeof(*got.events));
		assert_non_null(got.events);
	}
	assert_null(event->pid.text.ptr);
	assert_null(event->tid.text.ptr);
	assert_true(event->has_ts);
	got.events[got.count++] = (struct event){
		event->phase,      event->cat,        event->ts_ns,      event->dur_ns,
		event->pid.number, event->tid.number, copy(event->name), event->name.len,
		copy(event->text), copy(event->args),
	};
	return 0;
}

static int on_member(void *context, struct gt_str key, struct gt_str raw)
{
	(void)context;
	gt_buf_append(&got.members, key.ptr, key.len);
	gt_buf_byte(&got.members, '=');
	gt_buf_append(&got.members, raw.ptr, raw.len);
	gt_buf_byte(&got.members, '\n');
	return 0;
}

static void forget(void)
{
	for (size_t i = 0; i < got.count; i++) {
		free(got.events[i].name);
		free(got.events[i].text);
		free(got.events[i].args);
	}
	free(got.events);
	gt_buf_release(&got.members);
	memset(&got, 0, sizeof(got));
}

/* Nothing in the file is unclear to the reader. */
static void load(void)
{
	const struct gt_trace_hooks hooks = { NULL, on_event, on_member };
	struct gt_trace_stats stats;
	struct gt_gz_reader *gz;
	struct gt_err err = { 0 };

	forget();
	assert_int_equal(gt_gz_open(&gz, path, &err), 0);
	assert_int_equal(gt_trace_read(gz, &hooks, &stats, &err), 0);
	assert_int_equal(gt_gz_status(gz)->members, 1);
	assert_int_equal(gt_gz_status(gz)->damages, 0);
	assert_false(gt_gz_status(gz)->cut);
	assert_false(gt_gz_status(gz)->bad_checksum);
	assert_false(gt_gz_status(gz)->trailing_junk);
	gt_gz_close(gz);
	assert_int_equal(stats.repaired, 0);
	assert_int_equal(stats.skipped, 0);
	assert_false(stats.is_array || stats.repeated || stats.unclosed || stats.cut ||
		     stats.trailing);
	assert_int_equal(stats.events, got.count);
	gt_buf_byte(&got.members, '\0');
}

static void assert_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("no %s in %s", part, text ? text : "nothing");
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("%s in %s", part, text);
}

static inline struct event *find(char phase, enum gt_trace_cat cat, size_t nth)
{
	for (size_t i = 0; i < got.count; i++) {
		if (got.events[i].phase == phase && got.events[i].cat == cat && nth-- == 0)
			return &got.events[i];
	}
	return NULL;
}

static inline bool is_gpu_work(const struct event *event)
{
	return event->cat == GT_CAT_KERNEL || event->cat == GT_CAT_MEMCPY ||
	       event->cat == GT_CAT_MEMSET;
}

/* No two slices of one pid and tid overlap without nesting; GPU work does not even nest. */
static inline void assert_nests(void)
{
	for (size_t i = 0; i < got.count; i++) {
		const struct event *a = &got.events[i];

		for (size_t j = 0; j < got.count; j++) {
			const struct event *b = &got.events[j];

			if (i == j || a->phase != 'X' || b->phase != 'X' || a->pid != b->pid ||
			    a->tid != b->tid)
				continue;
			if (a->ts < b->ts && b->ts < a->ts + a->dur &&
			    (b->ts + b->dur > a->ts + a->dur ||
			     (b->dur && is_gpu_work(a) && is_gpu_work(b))))
				fail_msg("%s crosses %s", a->text, b->text);
		}
	}
}

/* The strict validator finds no error. Without it nothing is said. */
static void validate(void)
{
	const char *corpus = getenv("GTRACE_CORPUS");
	char tool[4096], command[8192];

	snprintf(tool, sizeof(tool), "%s/tools/tracecheck.py", corpus ? corpus : "../shared");
	if (access(tool, R_OK))
		return;
	snprintf(command, sizeof(command),
		 "found=$(python3 '%s' '%s' 2>&1) || { printf '%%s\\n' \"$found\" >&2; exit 1; }",
		 tool, path);
	assert_int_equal(system(command), 0);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/t-rank0.pt.trace.json.gz", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	forget();
	unlink(path);
	return rmdir(dir);
}

#endif
