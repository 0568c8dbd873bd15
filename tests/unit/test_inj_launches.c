/* CUDA calls by callbacks: one event for the outermost call, and what it says. */
#include "callbacks_rig.h"

static void outermost_call(void **state)
{
	struct gt_ev_call ev;

	(void)state;
	assert_int_equal(cupti.enabled, 6); /* five names and the graph nodes */
	atomic_store(&inj_arena->step, 5);
	enter(RUNTIME, LAUNCH, 77);
	enter(DRIVER, DRIVER_LAUNCH, 77);
	atomic_store(&inj_arena->step, 6); /* another thread's mark in between */
	leave(DRIVER, DRIVER_LAUNCH, 77);
	assert_no_call();
	leave(RUNTIME, LAUNCH, 77);
	ev = the_call();
	assert_int_equal(ev.ev.step, 5);
	assert_true(ev.ev.time_ns && ev.end_ns >= ev.ev.time_ns);
	assert_int_equal(ev.correlation, 77);
	assert_int_equal(ev.name_id, inj_intern("cudaLaunchKernel", 16));
	assert_int_equal(ev.domain, 2);
	assert_int_equal(ev.cbid, LAUNCH);
	assert_int_equal(ev.klass, GT_CALL_KERNEL);
	assert_int_equal(ev.flags, 0);
	assert_int_equal(ev.stream, GT_STREAM_UNKNOWN);
	assert_int_equal(ev.context, 0);

	enter(DRIVER, DRIVER_LAUNCH, 78);
	leave(DRIVER, DRIVER_LAUNCH, 78);
	ev = the_call();
	assert_int_equal(ev.domain, 1);
	assert_int_equal(ev.name_id, inj_intern("cuLaunchKernel", 14));
}

static void inner_calls_with_ids_of_their_own(void **state)
{
	(void)state;
	enter(RUNTIME, COPY, 10);
	enter(DRIVER, DRIVER_LAUNCH, 11);
	leave(DRIVER, DRIVER_LAUNCH, 11);
	enter(DRIVER, DRIVER_LAUNCH, 12);
	leave(DRIVER, DRIVER_LAUNCH, 12);
	leave(RUNTIME, COPY, 10);
	assert_int_equal(the_call().correlation, 10);
}

static void flags_of_a_call(void **state)
{
	const struct {
		void *dst;
		const void *src;
		size_t count;
	} empty = { 0 };
	const void *graph_params[] = { NULL, (void *)3 };
	struct gt_ev_call ev;

	(void)state;
	enter(RUNTIME, LAUNCH, 1);
	add_graph_node();
	leave(RUNTIME, LAUNCH, 1);
	assert_int_equal(the_call().flags, GT_CALL_CAPTURED);

	/* a node outside of any call does not touch the next one */
	add_graph_node();
	enter(RUNTIME, LAUNCH, 2);
	leave(RUNTIME, LAUNCH, 2);
	assert_int_equal(the_call().flags, 0);

	call(CUPTI_API_ENTER, RUNTIME, COPY, 3, &empty);
	call(CUPTI_API_EXIT, RUNTIME, COPY, 3, &empty);
	assert_int_equal(the_call().flags, GT_CALL_EMPTY);

	result = 1;
	enter(RUNTIME, LAUNCH, 4);
	leave(RUNTIME, LAUNCH, 4);
	assert_int_equal(the_call().flags, GT_CALL_FAILED);

	result = 0;
	call(CUPTI_API_ENTER, RUNTIME, GRAPH, 5, graph_params);
	call(CUPTI_API_EXIT, RUNTIME, GRAPH, 5, graph_params);
	ev = the_call();
	assert_int_equal(ev.klass, GT_CALL_GRAPH);
	assert_int_equal(ev.stream, 103);
	assert_int_equal(ev.context, 2);
	assert_true(inj_launches_graph_seen());
}

static void calls_not_heard_in_full(void **state)
{
	(void)state;
	/* under way when we came */
	leave(RUNTIME, LAUNCH, 1);
	assert_no_call();

	/* begun before the window closed, ended after: it is the window's */
	enter(RUNTIME, LAUNCH, 2);
	atomic_store(&inj_live.taking, 0);
	enter(RUNTIME, COPY, 3);
	leave(RUNTIME, COPY, 3);
	leave(RUNTIME, LAUNCH, 2);
	assert_int_equal(the_call().correlation, 2);

	/* the end was not heard, and is not to be taken for one of the next subscription */
	atomic_store(&inj_live.taking, 1);
	enter(RUNTIME, LAUNCH, 4);
	inj_launches_off();
	assert_int_equal(inj_launches_on(), 0);
	leave(RUNTIME, LAUNCH, 4);
	assert_no_call();
	enter(RUNTIME, SYNC, 5);
	leave(RUNTIME, SYNC, 5);
	assert_int_equal(the_call().correlation, 5);

	/* left by longjmp */
	enter(RUNTIME, LAUNCH, 6);
	enter(RUNTIME, SYNC, 7);
	leave(RUNTIME, SYNC, 7);
	assert_int_equal(the_call().correlation, 7);
}

static void interrupted_call(void **state)
{
	uint64_t dropped = inj_arena->dropped_events;

	(void)state;
	/* A signal handler launches while an event is being written. */
	assert_non_null(inj_reserve(GT_EV_CALL, sizeof(struct gt_ev_call)));
	enter(RUNTIME, LAUNCH, 1);
	leave(RUNTIME, LAUNCH, 1);
	inj_commit();
	assert_int_equal(the_call().ev.type, GT_EV_CALL);
	assert_int_equal(inj_arena->dropped_events, dropped + 1);
}

static void launches_are_counted(void **state)
{
	uint64_t before = inj_launches_total();

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		enter(RUNTIME, LAUNCH, i);
		leave(RUNTIME, LAUNCH, i);
		enter(RUNTIME, SYNC, i);
		leave(RUNTIME, SYNC, i);
	}
	enter(RUNTIME, LAUNCH, 9);
	add_graph_node();
	leave(RUNTIME, LAUNCH, 9);
	assert_int_equal(inj_launches_total(), before + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SUBSCRIBED(outermost_call),   SUBSCRIBED(inner_calls_with_ids_of_their_own),
		SUBSCRIBED(flags_of_a_call),  SUBSCRIBED(calls_not_heard_in_full),
		SUBSCRIBED(interrupted_call), SUBSCRIBED(launches_are_counted),
	};

	return cmocka_run_group_tests(tests, create, NULL);
}
