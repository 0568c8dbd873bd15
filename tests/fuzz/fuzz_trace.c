/*
 * fuzz_trace.c - the trace writer under calls without sense: whatever a peer makes us write, the
 * file is whole and clear to the reader after every flush.
 */
#include "base.h"
#include "must.h"
#include "trace_reader.h"
#include "trace_writer.h"
#include "wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *at;
	size_t left;
} input;

static void take(void *to, size_t len)
{
	size_t n = GT_MIN(len, input.left);

	memset(to, 0, len);
	if (n)
		memcpy(to, input.at, n);
	input.at += n;
	input.left -= n;
}

static uint8_t take_byte(void)
{
	uint8_t byte;

	take(&byte, 1);
	return byte;
}

/* Mostly small numbers, so that things meet. */
static uint64_t take_number(void)
{
	uint64_t value = 0;
	uint8_t byte = take_byte();

	if (byte < 0xf0)
		return byte;
	take(&value, (size_t)(byte & 7) + 1);
	return value;
}

static struct gt_str take_str(void)
{
	struct gt_str str = { .len = take_byte() };

	str.len = GT_MIN(str.len, input.left);
	if (str.len)
		str.ptr = (const char *)input.at;
	input.at += str.len;
	input.left -= str.len;
	return str;
}

static int on_event(void *context, const struct gt_trace_event *event)
{
	uint64_t *count = context;

	must(event->phase && event->has_ts && event->ts_ns >= 0 && event->dur_ns >= 0);
	must(event->phase != 'X' || (event->has_dur && event->args.len));
	++*count;
	return 0;
}

static void read_back(int fd, uint64_t want)
{
	const struct gt_trace_hooks hooks = { &(uint64_t){ 0 }, on_event, NULL };
	struct gt_trace_stats stats;
	struct gt_gz_reader *gz;
	struct gt_err err;
	struct stat st;
	void *file;

	must(!fstat(fd, &st) && st.st_size);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	must(file != MAP_FAILED);
	must(!gt_gz_open_mem(&gz, file, (size_t)st.st_size));
	must(!gt_trace_read(gz, &hooks, &stats, &err));
	must(gt_gz_status(gz)->members == 1 && !gt_gz_status(gz)->damages);
	must(!gt_gz_status(gz)->cut && !gt_gz_status(gz)->bad_checksum);
	must(!gt_gz_status(gz)->trailing_junk);
	must(!stats.repaired && !stats.skipped && !stats.cut && !stats.trailing);
	must(stats.events == want);
	gt_gz_close(gz);
	munmap(file, (size_t)st.st_size);
}

static struct gt_trace_call take_call(uint64_t base)
{
	struct gt_trace_call call = {
		.tid = (uint32_t)take_number(),
		.correlation = (uint32_t)take_number(),
		.cbid = take_byte(),
		.external_id = take_number(),
	};
	uint8_t flags = take_byte();

	call.start_ns = base + take_number() - 16;
	call.end_ns = call.start_ns + take_number() - 16;
	call.runtime = flags & 1;
	call.launches = flags & 2;
	call.captured = flags & 4;
	call.name = take_str();
	return call;
}

static void write_one(struct gt_trace *trace, uint64_t base, const struct gt_trace_health *health)
{
	struct gt_trace_call call;
	struct gt_trace_range range = { 0 };
	struct gt_trace_gpu_range span = { 0 };
	struct gt_trace_link link = { 0 };
	struct gt_trace_op torch = { 0 };
	struct gt_msg_device device;
	struct gt_gpu_op op;
	uint8_t what = take_byte();
	uint32_t lane;

	switch (what < 0xf8 ? what % 8 : what) {
	case 0:
		call = take_call(base);
		gt_trace_call(trace, &call);
		break;
	case 1:
	case 2:
		call = take_call(base);
		take(&op, sizeof(op));
		op.kind = (enum gt_gpu_kind)(take_byte() % 8);
		op.start_ns = base + take_number();
		op.end_ns = op.start_ns + take_number();
		op.device = (uint32_t)take_number();
		op.stream = (uint32_t)take_number();
		gt_trace_gpu(trace, &op, take_str(), take_byte() & 1 ? &call : NULL);
		break;
	case 3:
		range.tid = (uint32_t)take_number();
		range.process_range = take_byte() & 1;
		range.is_step = take_byte() & 1;
		range.start_ns = base + take_number();
		range.end_ns = range.start_ns + take_number();
		range.external_id = take_number();
		range.name = take_str();
		range.domain = take_str();
		range.inputs = take_byte() & 1 ? take_str() : (struct gt_str){ 0 };
		gt_trace_range(trace, &range);
		break;
	case 4:
		span.tid = (uint32_t)take_number();
		span.device = (uint32_t)take_number();
		span.is_step = take_byte() & 1;
		span.start_ns = base + take_number();
		span.end_ns = span.start_ns + take_number();
		span.external_id = take_number();
		span.name = take_str();
		gt_trace_gpu_range(trace, &span);
		break;
	case 5:
		gt_trace_mark(trace, (uint32_t)take_number(), base + take_number(), take_str());
		gt_trace_thread_name(trace, (uint32_t)take_number(), take_str());
		break;
	case 6:
		take(&device, sizeof(device));
		gt_trace_device(trace, &device);
		break;
	case 0xfe:
		torch.tid = (uint32_t)take_number();
		torch.fwd_thread = (uint32_t)take_number();
		torch.sequence = (int64_t)take_number() - 1;
		torch.start_ns = base + take_number();
		torch.end_ns = torch.start_ns + take_number() - 16;
		torch.external_id = take_number();
		torch.name = take_str();
		torch.inputs = take_str();
		gt_trace_op(trace, &torch, &lane);
		break;
	case 0xff:
		link.id = take_number();
		link.from_lane = (uint32_t)take_number();
		link.to_lane = (uint32_t)take_number();
		link.from_ns = base + take_number();
		link.to_ns = base + take_number();
		gt_trace_link(trace, &link);
		break;
	default:
		must(!gt_trace_flush(trace, health, NULL));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct gt_trace_health health = { 0 };
	struct gt_trace_meta meta = { 0 };
	struct gt_trace *trace;
	char path[64];
	uint64_t base, events = 0;

	input.at = data;
	input.left = size;
	must(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	take(&base, sizeof(base));
	meta.pid = take_byte();
	meta.rank = take_byte();
	meta.world_size = take_byte();
	take(&health.step_before_ms, sizeof(double));
	take(&health.step_active_ms, sizeof(double));
	must(!gt_trace_create(&trace, path, GT_TRACE_OVERWRITE, base & INT64_MAX, &meta, NULL));
	while (input.left)
		write_one(trace, base & INT64_MAX, &health);
	must(!gt_trace_flush(trace, &health, NULL));
	events = gt_trace_event_count(trace);
	read_back(fd, events);
	must(!gt_trace_close(trace, &health, NULL));
	read_back(fd, events);
	close(fd);
	return 0;
}
