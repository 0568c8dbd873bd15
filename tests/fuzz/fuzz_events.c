/*
 * The events of a hostile target, through the whole recorder into a real file. The input is a
 * header of 8 bytes, then pieces: thread, what to do before, length (2 bytes), bytes of its stream.
 */
#include "base.h"
#include "../unit/arena_builder.h"
#include "recorder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

/* GPU work for what may be launched. */
static void put_kernels(void)
{
	uint32_t id;

	for (id = 0; id < 16; id++)
		ab_kernel_on(&ab, id, id % 3, AB_MS(id), AB_MS(id + 1), id);
	ab_flush(&ab);
}

static void put_phase(struct gt_recorder *rec, uint8_t what)
{
	struct gt_msg_phase msg = {
		.what = what % 12, .cycle = what >> 6, .value = what >> 4, .time_ns = AB_MS(what)
	};

	gt_recorder_phase(rec, &msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_recorder_config config = { .command = "fuzz", .host = "here" };
	struct gt_recorder_report report;
	struct gt_recorder *rec;
	uint64_t now_ns = AB_MS(100);

	if (size < 8)
		return 0;
	ab_init(&ab, 1 + data[0] % 3);
	snprintf(path, sizeof(path), "/tmp/gtrace-fuzz-events-%d.json.gz", (int)getpid());
	atomic_store(&ab.hdr->step, data[1]);
	config.schedule = (struct gt_schedule){
		.skip_first = data[2] % 4,
		.wait = data[3] % 3,
		.warmup = data[4] % 3,
		.active = 1 + data[5] % 8,
		.repeat = data[6] % 3,
	};
	config.path_for = path_for;
	config.with_stack = data[7] & 1;
	config.with_modules = data[7] & 2;
	ab_check(!gt_recorder_new(&rec, ab_fd(&ab), &ab.hello, &config, NULL), "recorder");
	put_kernels();
	for (data += 8, size -= 8; size >= 4;) {
		size_t len = GT_MIN((size_t)(data[2] | data[3] << 8), size - 4);

		switch (data[1] % 8) {
		case 0:
			gt_recorder_look(rec);
			gt_recorder_drain(rec, now_ns, data[1] & 8, &report);
			now_ns += (uint64_t)data[1] * GT_NSEC_PER_MSEC * 4;
			break;
		case 1:
			ab_done(&ab, 1 + data[0] % 4);
			break;
		case 2:
			put_phase(rec, data[0]);
			break;
		case 3:
			atomic_store(&ab.hdr->mode, data[0] % 4);
			atomic_store(&ab.hdr->step, data[0] / 4);
			break;
		}
		if (len && ab_count(&ab, GT_POOL_EVENT, GT_CHUNK_FREE))
			ab_put(&ab, 1 + data[0] % 4, data + 4, GT_MIN(len, (size_t)4096));
		data += 4 + len;
		size -= 4 + len;
	}
	gt_recorder_finish(rec, size & 1, now_ns, &report);
	gt_recorder_free(rec);
	ab_release(&ab);
	unlink(path);
	return 0;
}
