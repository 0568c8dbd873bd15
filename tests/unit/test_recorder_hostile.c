/*
 * A target that writes anything: the recorder stays within its bounds and memory, whatever the
 * arena and the messages say. Deterministic; worth most under the sanitizers.
 */
#include "base.h"
#include "recorder_rig.h"

#define ROUNDS 400

static uint32_t seed;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)(seed >> 4) * below) >> 28);
}

/* Some of everything, as a good target writes it. */
static void fill(void)
{
	static const uint16_t kinds[] = { 1, 2, 3, 10, 22, 38, 51 };
	const struct ab_sizes *sizes = &ab_versions[rnd(ARRAY_SIZE(ab_versions))];
	uint32_t i, step_number = 0;

	ab_set_sizes(ab.hello.record_bytes, sizes);
	ab_string(&ab, MAIN, 1, "kernel_one");
	ab_name(&ab, GT_EV_POINTER, MAIN, UINT64_C(0x7fff00000000), 1, 0);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(2) << 32 | 211, 1, GT_CALL_KERNEL);
	ab_name(&ab, GT_EV_THREAD_NAME, MAIN, MAIN, 1, 0);
	for (i = 0; i < 120; i++) {
		uint32_t tid = 1 + rnd(4), id = rnd(60);
		uint64_t time_ns = AB_MS(i);
		unsigned char record[GT_EVENT_CHUNK / 64] = { 0 };
		uint16_t kind = kinds[rnd(ARRAY_SIZE(kinds))];

		switch (rnd(11)) {
		case 0:
			ab_step(&ab, tid, ++step_number, time_ns);
			break;
		case 1:
			ab_push(&ab, tid, step_number, time_ns, rnd(4), "range");
			break;
		case 2:
			ab_pop(&ab, tid, step_number, time_ns, rnd(4));
			break;
		case 3:
			ab_range(&ab, GT_EV_RANGE_START, tid, step_number, time_ns, 0, id, "p");
			break;
		case 4:
			ab_end(&ab, GT_EV_RANGE_END, tid, step_number, time_ns, 0, id);
			break;
		case 5:
		case 6:
			ab_call(&ab, (struct ab_call){ .tid = tid,
						       .step = step_number,
						       .correlation = id,
						       .stream = rnd(3),
						       .klass = (uint16_t)rnd(8),
						       .flags = rnd(9) ? 0 : rnd(8),
						       .start_ns = time_ns });
			break;
		case 8:
			ab_op(&ab, (struct ab_op){ .tid = tid,
						   .step = step_number,
						   .name_id = 1,
						   .depth = rnd(4),
						   .thread = rnd(3),
						   .fwd_thread = rnd(3),
						   .sequence = (int64_t)rnd(8) - 2,
						   .start_ns = time_ns });
			break;
		case 9:
			ab_op_end(&ab, tid, step_number, time_ns, rnd(4));
			break;
		case 7:
			ab_api(&ab, rnd(2), 211, tid, id, time_ns, time_ns + 1000);
			break;
		default:
			ab_u32(record, 0, kind);
			ab_u64(record, kind == 51 ? 8 : 16, time_ns + 1000);
			ab_u64(record, kind == 51 ? 16 : 24, time_ns + 2000);
			ab_u32(record, kind == 51 ? 4 : kind == 22 ? 60 : kind < 3 ? 44 : 92, id);
			ab_record(&ab, record, ab.hello.record_bytes[kind]);
		}
	}
	if (rnd(2))
		ab_flush(&ab);
	if (rnd(2))
		ab_done(&ab, 1 + rnd(4));
}

/* Change bytes that a target can write at any time: counters, tables, events, records. */
static void spoil(uint32_t changes)
{
	while (changes--) {
		enum gt_pool pool = rnd(2);
		struct gt_chunk *chunk = &ab_table(&ab, pool)[rnd(4)];
		uint32_t used = atomic_load(&chunk->used_bytes);
		uint32_t value = rnd(2) ? rnd(UINT32_MAX >> 5) << rnd(6) : rnd(64);

		switch (rnd(12)) {
		case 0:
			atomic_store(&ab.hdr->step, rnd(3) ? rnd(40) : value);
			break;
		case 1:
			atomic_store(&ab.hdr->mode, rnd(5));
			break;
		case 2:
			atomic_store(&ab.hdr->keep_full, rnd(2));
			break;
		case 3:
			atomic_store(&chunk->used_bytes, value);
			break;
		case 4:
			atomic_store(&chunk->seq, value);
			break;
		case 5:
			atomic_store(&chunk->state, rnd(4));
			break;
		case 6:
			ab.hdr->pool[pool].count = value; /* after the check: of no effect */
			ab.hdr->pool[pool].count = pool == GT_POOL_CUPTI ? 4 : 32;
			break;
		default:
			used = GT_MIN(used, 16384u);
			if (used > 8)
				ab_u32(ab_data(&ab, pool, chunk), rnd(used / 4) * 4, value);
		}
	}
}

static void any_message(void)
{
	struct gt_msg_device device = { .id = rnd(70) };

	if (rnd(4))
		phase(1 + rnd(11), rnd(3) ? rnd(8) : UINT64_MAX, rnd(8), rnd(200));
	else
		gt_recorder_device(rec, &device);
}

static void any_bytes(void **state)
{
	uint32_t round, i;

	for (round = 0; round < ROUNDS; round++) {
		seed = round;
		config.schedule = (struct gt_schedule){
			.skip_first = rnd(2),
			.wait = rnd(2),
			.warmup = rnd(2),
			.active = 1 + rnd(3),
			.repeat = rnd(3),
		};
		atomic_store(&ab.hdr->mode, 1 + rnd(3));
		fill();
		assert_int_equal(gt_recorder_new(&rec, ab_fd(&ab), &ab.hello, &config, &err), 0);
		for (i = 0; i < 4; i++) {
			spoil(rnd(30));
			if (rnd(2))
				any_message();
			gt_recorder_look(rec);
			gt_recorder_drain(rec, AB_MS(100 + rnd(5000)), rnd(2), &report);
		}
		if (rnd(4))
			gt_recorder_finish(rec, rnd(2), AB_MS(6000), &report);
		gt_recorder_free(rec);
		rec = NULL;
		teardown(state);
		setup(state);
	}
}

/* One name, range and thread after the other, until the bounds hold. */
static void piles(void **state)
{
	uint32_t i, round;

	(void)state;
	start();
	steps_to(2);
	fake_discard = true;
	for (round = 0; round < 40; round++) {
		for (i = 0; i < 2000; i++) {
			struct gt_ev_string name = {
				.ev = ab_ev(GT_EV_STRING, sizeof(name), 0, 0),
				.id = 10 + round * 2000 + i,
				.total_bytes = GT_STRING_MAX,
			};

			ab_put(&ab, 11, &name, sizeof(name));
			ab_push(&ab, 12, 2, AB_MS(21), 0, "never popped");
			ab_range(&ab, GT_EV_RANGE_START, 13, 2, AB_MS(21), 0, i, "never ended");
			ab_launch(&ab, 13, 2, round * 2000 + i, AB_MS(21));
		}
		drain(25);
	}
	finish(true, 30);
	assert_true(only_trace()->health.dropped_names > 0);
	assert_true(only_trace()->health.dropped_ring > 0);
	assert_int_equal(only_trace()->health.launches_without_gpu, 80000);
}

static void bad_chunks(void **state)
{
	const struct gt_ev bad = ab_ev(GT_EV_CALL, 24, 2, 0);
	uint32_t kind = 9; /* of no known size */

	(void)state;
	start();
	steps_to(1);
	drain(15);
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_record(&ab, &kind, 4);
	ab_kernel(&ab, 2, AB_MS(22));
	ab_flush(&ab);
	ab_launch(&ab, 11, 2, 3, AB_MS(22));
	ab_put(&ab, 11, &bad, sizeof(bad));
	ab_launch(&ab, 11, 2, 4, AB_MS(23));
	ab_done(&ab, 11);
	steps_to(4);
	close_cycle(50);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_int_equal(ab_count(&ab, GT_POOL_CUPTI, GT_CHUNK_FREE), 16);
	assert_int_equal(ab_count(&ab, GT_POOL_EVENT, GT_CHUNK_FREE), 31);
	phase(GT_WHAT_OFF, 0, 0, 60);
	drain(70);
	assert_int_equal(only_trace()->health.bad_records, 2);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
	assert_null(call_of(only_trace(), 4));
}

/* Events of a step that the process has not come to open no window. */
static void impossible_step(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1, .repeat = 0 };
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 1000, 1, AB_MS(21));
	drain(25);
	finish(false, 30);
	assert_int_equal(fake_count, 2);
	assert_int_equal(fake_traces[0].meta.cycle, 2);
	assert_int_equal(fake_traces[1].meta.cycle, 3);
	assert_int_equal(fake_traces[1].health.bad_records, 1);
}

/* The whole run is one window, however often the target says that it is to be one. */
static void modes_in_turn(void **state)
{
	(void)state;
	start();
	for (uint64_t i = 1; i <= 40; i++) {
		atomic_store(&ab.hdr->mode, i % 2 ? GT_MODE_WHOLE : GT_MODE_STEPS);
		drain(10 * i);
	}
	finish(true, 500);
	assert_true(fake_count <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(any_bytes),       TEST(piles),         TEST(bad_chunks),
		TEST(impossible_step), TEST(modes_in_turn),
	};

	return cmocka_run_group_tests_name("recorder_hostile", tests, NULL, NULL);
}
