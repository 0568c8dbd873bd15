/*
 * CUPTI records of a hostile target, or of a CUPTI that we do not know, through the whole recorder
 * into a real file. The input: flags, which size table, then (with flag 1) a table of its own of
 * 64 sizes in units of 8, then the bytes of one buffer.
 */
#include "base.h"
#include "../unit/arena_builder.h"
#include "recorder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OWN_TABLE = 1, BUSY = 2, FALLBACK = 4, DIED = 8 }; /* flags */

static struct arena_builder ab;
static char path[64];

static int path_for(void *ctx, const struct gt_msg_hello *hello, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *err)
{
	(void)ctx;
	(void)hello;
	(void)cycle;
	(void)err;
	snprintf(buf, len, "%s", path);
	*overwrite = true;
	return 0;
}

/* A window with launches of every class, and ranges around them. */
static void put_events(void)
{
	static const uint16_t classes[] = { GT_CALL_KERNEL, GT_CALL_GRAPH, GT_CALL_COPY,
					    GT_CALL_SET };
	uint32_t i;

	ab_string(&ab, AB_PID, 1, "_Z4kernPf");
	ab_name(&ab, GT_EV_API_NAME, AB_PID, UINT64_C(2) << 32 | 211, 1, GT_CALL_KERNEL);
	ab_name(&ab, GT_EV_API_NAME, AB_PID, UINT64_C(1) << 32 | 307, 1, GT_CALL_KERNEL);
	ab_step(&ab, AB_PID, 1, AB_MS(10));
	ab_push(&ab, AB_PID, 1, AB_MS(10.5), 1, "range");
	for (i = 0; i < 16; i++)
		ab_call(&ab, (struct ab_call){ .tid = AB_PID,
					       .step = 1,
					       .correlation = i,
					       .name_id = 1,
					       .stream = 7,
					       .klass = classes[i % 4],
					       .start_ns = AB_MS(11 + i) });
	ab_pop(&ab, AB_PID, 1, AB_MS(30), 1);
	ab_step(&ab, AB_PID, 2, AB_MS(40));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_recorder_config config = {
		.schedule = { .skip_first = 1, .active = 1, .repeat = 1 },
		.command = "fuzz",
		.host = "here",
		.path_for = path_for,
	};
	struct gt_msg_phase fallback = { .what = GT_WHAT_FALLBACK };
	struct gt_recorder_report report;
	struct gt_recorder *rec;
	uint8_t flags;
	size_t i;

	if (size < 2 + GT_KIND_MAX)
		return 0;
	ab_init(&ab, GT_MODE_STEPS);
	snprintf(path, sizeof(path), "/tmp/gtrace-fuzz-records-%d.json.gz", (int)getpid());
	flags = data[0];
	ab_set_sizes(ab.hello.record_bytes, &ab_versions[data[1] % ARRAY_SIZE(ab_versions)]);
	data += 2;
	size -= 2;
	if (flags & OWN_TABLE) {
		for (i = 0; i < GT_KIND_MAX; i++)
			ab.hello.record_bytes[i] = (uint16_t)(data[i] * 8);
		data += GT_KIND_MAX;
		size -= GT_KIND_MAX;
	}
	ab_check(!gt_recorder_new(&rec, ab_fd(&ab), &ab.hello, &config, NULL), "recorder");
	if (flags & FALLBACK)
		gt_recorder_phase(rec, &fallback);
	put_events();
	ab_record(&ab, data, GT_MIN(size, (size_t)GT_CUPTI_CHUNK));
	if (!(flags & BUSY))
		ab_flush(&ab);
	gt_recorder_look(rec);
	gt_recorder_drain(rec, AB_MS(50), false, &report);
	gt_recorder_look(rec);
	gt_recorder_drain(rec, AB_MS(200), true, &report);
	gt_recorder_finish(rec, flags & DIED, AB_MS(500), &report);
	gt_recorder_free(rec);
	ab_release(&ab);
	unlink(path);
	return 0;
}
