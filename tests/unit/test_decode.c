#include "base.h"
#include "arena_builder.h"
#include "decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static unsigned char rec[GT_RECORD_MAX];
static uint16_t sizes[GT_KIND_MAX];
static struct gt_record got;

static void clear(uint32_t kind)
{
	memset(rec, 0, sizeof(rec));
	ab_u32(rec, 0, kind);
}

/* Decode rec, of a kind in this version; what follows it is another, unlike record. */
static void decode(uint16_t size, enum gt_record_type want)
{
	unsigned char buf[2 * GT_RECORD_MAX];
	struct gt_record_cursor cur = { .pos = buf, .end = buf + sizeof(buf) };

	memset(buf, 0xee, sizeof(buf));
	memcpy(buf, rec, size);
	cur.record_bytes = sizes;
	assert_int_equal(gt_record_next(&cur, &got), 1);
	assert_int_equal(got.type, want);
	assert_int_equal(cur.pos - buf, size);
}

static void each_version(void (*check)(const struct ab_sizes *of))
{
	uint16_t raw[GT_KIND_MAX];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ab_versions); i++) {
		ab_set_sizes(raw, &ab_versions[i]);
		gt_record_sizes(sizes, raw);
		check(&ab_versions[i]);
	}
}

static void check_kernel(const struct ab_sizes *of)
{
	uint32_t i;

	clear(10);
	rec[6] = 0x34;
	rec[7] = 0x12;
	ab_u64(rec, 16, 1000);
	ab_u64(rec, 24, 2500);
	for (i = 40; i < 104; i += 4)
		if (i != 104)
			ab_u32(rec, i, i);
	ab_u64(rec, 104, UINT64_C(0x7f0000001234));
	ab_u64(rec, 120, 900);
	ab_u32(rec, 140, 140);
	ab_u64(rec, 144, UINT64_C(0x1400000090));
	ab_u32(rec, 156, 156);
	for (i = 168; i < 188; i += 4)
		ab_u32(rec, i, i);
	decode(of->kernel, GT_RECORD_GPU);
	assert_int_equal(got.op.kind, GT_GPU_KERNEL);
	assert_int_equal(got.op.registers_per_thread, 0x1234);
	assert_int_equal(got.op.start_ns, 1000);
	assert_int_equal(got.op.end_ns, 2500);
	assert_int_equal(got.op.device, 40);
	assert_int_equal(got.op.context, 44);
	assert_int_equal(got.op.stream, 48);
	for (i = 0; i < 3; i++) {
		assert_int_equal(got.op.grid[i], 52 + 4 * i);
		assert_int_equal(got.op.block[i], 64 + 4 * i);
		assert_int_equal(got.op.cluster[i], 176 + 4 * i);
	}
	assert_int_equal(got.op.static_shared_bytes, 76);
	assert_int_equal(got.op.dynamic_shared_bytes, 80);
	assert_int_equal(got.op.correlation, 92);
	assert_int_equal(got.op.name_ref, UINT64_C(0x7f0000001234));
	assert_int_equal(got.op.queued_ns, 900);
	assert_int_equal(got.op.shared_executed_bytes, 140);
	assert_int_equal(got.op.graph_node_id, UINT64_C(0x1400000090));
	assert_int_equal(got.op.graph_id, 156);
	assert_int_equal(got.op.channel, 168);
	assert_int_equal(got.op.channel_type, 172);
}

static void kernel(void **state)
{
	(void)state;
	each_version(check_kernel);
}

static void check_copy(const struct ab_sizes *of)
{
	clear(1);
	memcpy(rec + 4, "\1\2\3\4", 4);
	ab_u64(rec, 8, UINT64_C(5) << 32);
	ab_u64(rec, 16, 1000);
	ab_u64(rec, 24, 1000);
	ab_u32(rec, 32, 32);
	ab_u32(rec, 36, 36);
	ab_u32(rec, 40, 40);
	ab_u32(rec, 44, 44);
	ab_u64(rec, 64, 64);
	ab_u32(rec, 72, 72);
	ab_u32(rec, 76, 76);
	ab_u32(rec, 80, 80);
	decode(of->copy, GT_RECORD_GPU);
	assert_int_equal(got.op.kind, GT_GPU_MEMCPY);
	assert_int_equal(got.op.copy_kind, 1);
	assert_int_equal(got.op.src_kind, 2);
	assert_int_equal(got.op.dst_kind, 3);
	assert_int_equal(got.op.copy_flags, 4);
	assert_int_equal(got.op.bytes, UINT64_C(5) << 32);
	assert_int_equal(got.op.device, 32);
	assert_int_equal(got.op.context, 36);
	assert_int_equal(got.op.stream, 40);
	assert_int_equal(got.op.correlation, 44);
	assert_int_equal(got.op.graph_node_id, 64);
	assert_int_equal(got.op.graph_id, 72);
	/* the channel was padding, of any content, before the layout had its type */
	assert_int_equal(got.op.channel, of->copy >= 84 ? 76 : 0);
	assert_int_equal(got.op.channel_type, of->copy >= 84 ? 80 : 0);
}

static void copy(void **state)
{
	(void)state;
	each_version(check_copy);
}

static void check_peer(const struct ab_sizes *of)
{
	uint32_t i;

	clear(22);
	ab_u64(rec, 8, 4096);
	ab_u64(rec, 16, 7);
	ab_u64(rec, 24, 9);
	for (i = 32; i < 64; i += 4)
		ab_u32(rec, i, i);
	ab_u64(rec, 72, 72);
	ab_u32(rec, 80, 80);
	ab_u32(rec, 84, 84);
	ab_u32(rec, 88, 88);
	decode(of->peer, GT_RECORD_GPU);
	assert_int_equal(got.op.kind, GT_GPU_PEER);
	assert_int_equal(got.op.bytes, 4096);
	assert_int_equal(got.op.stream, 40);
	assert_int_equal(got.op.src_device, 44);
	assert_int_equal(got.op.src_context, 48);
	assert_int_equal(got.op.dst_device, 52);
	assert_int_equal(got.op.dst_context, 56);
	assert_int_equal(got.op.correlation, 60);
	assert_int_equal(got.op.graph_node_id, 72);
	assert_int_equal(got.op.graph_id, 80);
	assert_int_equal(got.op.channel, of->peer >= 92 ? 84 : 0);
}

static void peer(void **state)
{
	(void)state;
	each_version(check_peer);
}

static void check_set(const struct ab_sizes *of)
{
	clear(2);
	ab_u32(rec, 4, 0xff);
	ab_u64(rec, 8, 12);
	ab_u64(rec, 16, 7);
	ab_u64(rec, 24, 9);
	ab_u32(rec, 40, 40);
	ab_u32(rec, 44, 44);
	ab_u32(rec, 48, 3 << 16);
	ab_u64(rec, 64, 64);
	decode(of->set, GT_RECORD_GPU);
	assert_int_equal(got.op.kind, GT_GPU_MEMSET);
	assert_int_equal(got.op.set_value, 0xff);
	assert_int_equal(got.op.bytes, 12);
	assert_int_equal(got.op.stream, 40);
	assert_int_equal(got.op.correlation, 44);
	assert_int_equal(got.op.dst_kind, 3);
	assert_int_equal(got.op.graph_node_id, 64);
}

static void set(void **state)
{
	(void)state;
	each_version(check_set);
}

static void check_graph(const struct ab_sizes *of)
{
	clear(51);
	ab_u32(rec, 4, 4);
	ab_u64(rec, 8, 8);
	ab_u64(rec, 16, 16);
	ab_u32(rec, 24, 24);
	ab_u32(rec, 28, 28);
	ab_u32(rec, 32, 32);
	ab_u32(rec, 36, 36);
	decode(of->graph, GT_RECORD_GPU);
	assert_int_equal(got.op.kind, GT_GPU_GRAPH);
	assert_int_equal(got.op.correlation, 4);
	assert_int_equal(got.op.start_ns, 8);
	assert_int_equal(got.op.end_ns, 16);
	assert_int_equal(got.op.device, 24);
	assert_int_equal(got.op.graph_id, 28);
	assert_int_equal(got.op.context, 32);
	assert_int_equal(got.op.stream, 36);
}

static void graph(void **state)
{
	(void)state;
	each_version(check_graph);
}

static void check_api(const struct ab_sizes *of)
{
	(void)of;
	clear(5);
	ab_u32(rec, 4, 211);
	ab_u64(rec, 8, 8);
	ab_u64(rec, 16, 16);
	ab_u32(rec, 24, 24);
	ab_u32(rec, 28, 28);
	ab_u32(rec, 32, 32);
	ab_u32(rec, 36, 36);
	decode(40, GT_RECORD_API);
	assert_true(got.api.runtime);
	assert_int_equal(got.api.cbid, 211);
	assert_int_equal(got.api.start_ns, 8);
	assert_int_equal(got.api.end_ns, 16);
	assert_int_equal(got.api.pid, 24);
	assert_int_equal(got.api.tid, 28);
	assert_int_equal(got.api.correlation, 32);
	assert_int_equal(got.api.return_value, 36);
	ab_u32(rec, 0, 4);
	decode(40, GT_RECORD_API);
	assert_false(got.api.runtime);
}

static void api(void **state)
{
	(void)state;
	each_version(check_api);
}

/* The oldest layout has no cluster and no channel: they are 0, not what lies behind the record. */
static void short_kernel(void **state)
{
	uint16_t raw[GT_KIND_MAX] = { [3] = 144 };

	(void)state;
	gt_record_sizes(sizes, raw);
	clear(3);
	ab_u64(rec, 16, 1);
	ab_u64(rec, 24, 2);
	decode(144, GT_RECORD_GPU);
	assert_int_equal(got.op.graph_node_id, 0);
	assert_int_equal(got.op.channel, 0);
	assert_int_equal(got.op.cluster[0], 0);
}

static void untimed(void **state)
{
	static const uint64_t times[][2] = { { 0, 0 }, { 0, 5 }, { 5, 4 } };
	size_t i;

	(void)state;
	each_version(check_kernel);
	for (i = 0; i < ARRAY_SIZE(times); i++) {
		clear(10);
		ab_u32(rec, 92, 77);
		ab_u64(rec, 16, times[i][0]);
		ab_u64(rec, 24, times[i][1]);
		decode(sizes[10], GT_RECORD_UNTIMED);
		assert_int_equal(got.op.correlation, 77);
	}
}

/* In a buffer that CUPTI holds: of work that waits, that runs, that is over. */
static void held(void **state)
{
	(void)state;
	each_version(check_kernel);
	clear(10);
	ab_u32(rec, 0, UINT32_C(0x8000000A));
	ab_u32(rec, 92, 77);
	decode(sizes[10], GT_RECORD_UNTIMED);
	ab_u64(rec, 16, 5);
	decode(sizes[10], GT_RECORD_RUNNING);
	ab_u64(rec, 24, 9);
	decode(sizes[10], GT_RECORD_GPU);
	assert_int_equal(got.op.correlation, 77);
	assert_int_equal(got.op.end_ns, 9);
}

static void walk(void **state)
{
	unsigned char buf[1024] = { 0 };
	struct gt_record_cursor cur = { .record_bytes = sizes };

	(void)state;
	each_version(check_kernel);
	/* an unused kind, a kernel, then zeroes: the end */
	ab_u32(buf, 0, 38);
	ab_u32(buf, 56, 10);
	cur.pos = buf;
	cur.end = buf + sizeof(buf);
	assert_int_equal(gt_record_next(&cur, &got), 1);
	assert_int_equal(got.type, GT_RECORD_OTHER);
	assert_int_equal(gt_record_next(&cur, &got), 1);
	assert_int_equal(got.type, GT_RECORD_UNTIMED);
	assert_int_equal(gt_record_next(&cur, &got), 0);
	/* the same cut within the kernel, and within its kind */
	cur.pos = buf;
	cur.end = buf + 56 + sizes[10] - 1;
	assert_int_equal(gt_record_next(&cur, &got), 1);
	assert_int_equal(gt_record_next(&cur, &got), 0);
	cur.pos = buf;
	cur.end = buf + 56 + 3;
	assert_int_equal(gt_record_next(&cur, &got), 1);
	assert_int_equal(gt_record_next(&cur, &got), 0);
	/* kinds of unknown size */
	ab_u32(buf, 56, 9);
	cur.pos = buf + 56;
	cur.end = buf + sizeof(buf);
	assert_int_equal(gt_record_next(&cur, &got), -EBADMSG);
	ab_u32(buf, 56, GT_KIND_MAX);
	assert_int_equal(gt_record_next(&cur, &got), -EBADMSG);
	ab_u32(buf, 56, UINT32_MAX);
	assert_int_equal(gt_record_next(&cur, &got), -EBADMSG);
}

static void hostile_sizes(void **state)
{
	uint16_t raw[GT_KIND_MAX] = {
		[0] = 8,   [1] = 56,    [3] = 145, [10] = 136, [5] = 32,
		[7] = 513, [8] = 65528, [9] = 4,   [6] = 512,  [11] = 8,
	};
	size_t i;

	(void)state;
	gt_record_sizes(sizes, raw);
	for (i = 0; i < GT_KIND_MAX; i++)
		assert_int_equal(sizes[i], i == 6 ? 512 : i == 11 ? 8 : 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel),        cmocka_unit_test(copy),
		cmocka_unit_test(peer),          cmocka_unit_test(set),
		cmocka_unit_test(graph),         cmocka_unit_test(api),
		cmocka_unit_test(short_kernel),  cmocka_unit_test(untimed),
		cmocka_unit_test(held),          cmocka_unit_test(walk),
		cmocka_unit_test(hostile_sizes),
	};

	return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
