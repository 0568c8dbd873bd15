/* Processes of a session agree on a window: scripted ones, which take it, are late, or say nothing.
 */
#include "base.h"
#include "fake_recorder.h"
#include "peer.h"
#include "sockdir.h"
#include "trigger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define PEERS 3

static uv_loop_t loop;
static struct gt_sockdir sockdir;
static struct gt_collector collector;
static struct gt_trigger trigger;
static struct gt_schedule schedule;
static struct gt_trigger_result result;
static struct gt_err err;
static int done, left_out, idle, drained;
static int peers[PEERS];
static struct gt_msg_plan plan; /* the last one that a peer got */

static const struct gt_trigger_request soon = { .active = 3, .warmup = 1 };

/* ---- the owner ---- */

static void on_phase(void *ctx, const struct gt_client_info *client,
		     const struct gt_msg_phase *phase)
{
	(void)ctx;
	(void)client;
	(void)phase;
}

static void on_drained(void *ctx, const struct gt_client_info *client)
{
	(void)ctx;
	(void)client;
	drained++;
}

static void on_gone(void *ctx, const struct gt_client_info *client)
{
	(void)ctx;
	(void)client;
}

static int path_for(void *ctx, const struct gt_client_info *client, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *why)
{
	(void)ctx;
	(void)client;
	(void)cycle;
	(void)overwrite;
	(void)why;
	snprintf(buf, len, "path");
	return 0;
}

static void on_idle(void *ctx)
{
	(void)ctx;
	idle++;
}

static void on_answered(void *ctx, const struct gt_client_info *client)
{
	(void)ctx;
	gt_trigger_answered(&trigger, client);
}

static void on_done(void *ctx, const struct gt_trigger_result *got)
{
	(void)ctx;
	result = *got;
	done++;
}

static void on_left_out(void *ctx, const struct gt_client_info *client, const char *why)
{
	(void)ctx;
	(void)client;
	(void)why;
	left_out++;
}

static const struct gt_client_ops ops = {
	.phase = on_phase,
	.drained = on_drained,
	.gone = on_gone,
	.path_for = path_for,
};

/* What the drains report from now on, of which another thread may just be doing one. */
static void report_step(uint32_t step, enum gt_step_source source)
{
	struct gt_recorder_report report = fake.report;

	report.step = step;
	report.step_source = source;
	fake_recorder_say(report);
}

static int start(void **state)
{
	const char *bases[] = { "/tmp" };

	(void)state;
	fake_recorder_reset();
	fake.report.step = 100;
	fake.report.step_source = GT_STEP_API;
	schedule = (struct gt_schedule){ .on_demand = true, .active = 3, .warmup = 1 };
	done = left_out = idle = drained = 0;
	if (gt_sockdir_open(&sockdir, bases, 1, NULL) < 0 || uv_loop_init(&loop) < 0)
		return -1;
	collector = (struct gt_collector){
		.listen_fd = sockdir.listen_fd,
		.ops = &ops,
		.idle = on_idle,
		.answered = on_answered,
	};
	trigger = (struct gt_trigger){
		.collector = &collector,
		.schedule = &schedule,
		.done = on_done,
		.left_out = on_left_out,
	};
	for (size_t i = 0; i < PEERS; i++)
		peers[i] = -1;
	gt_trigger_start(&trigger, &loop);
	return gt_collector_start(&collector, &loop, NULL);
}

static int stop(void **state)
{
	(void)state;
	if (collector.client_count)
		gt_collector_stop(&collector, "a test");
	while (collector.client_count)
		uv_run(&loop, UV_RUN_ONCE);
	gt_trigger_close(&trigger);
	gt_collector_close(&collector);
	uv_run(&loop, UV_RUN_DEFAULT);
	for (size_t i = 0; i < PEERS; i++)
		if (peers[i] >= 0)
			close(peers[i]);
	gt_sockdir_close(&sockdir);
	return uv_loop_close(&loop) || fake.interleaved;
}

/* ---- the peers ---- */

static void connect_one(int *peer)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memcpy(addr.sun_path, sockdir.path, sizeof(sockdir.path));
	*peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(*peer, (struct sockaddr *)&addr, sizeof(addr)), 0);
	peer_send_hello(*peer);
}

static void join(void)
{
	for (size_t i = 0; i < PEERS; i++)
		connect_one(&peers[i]);
	while (drained < 2 * PEERS) /* what they do is known */
		uv_run(&loop, UV_RUN_ONCE);
}

static void begin(const struct gt_trigger_request *request)
{
	assert_int_equal(gt_trigger_begin(&trigger, request, &err), 0);
}

/* The next message of this type; none of another one but these two comes. */
static void expect(int fd, enum gt_msg_type type)
{
	union {
		struct gt_msg_hdr hdr;
		struct gt_msg_plan plan;
	} msg;

	while (recv(fd, &msg, sizeof(msg), 0) < 0)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(msg.hdr.type, type);
	if (type == GT_MSG_PLAN)
		plan = msg.plan;
}

static void answer(int fd, uint32_t what, uint64_t step)
{
	const struct gt_msg_phase phase = {
		.hdr = PEER_HDR(GT_MSG_PHASE, sizeof(phase)),
		.what = what,
		.cycle = plan.id,
		.value = step,
	};

	peer_send(fd, &phase, sizeof(phase), 0);
}

static void take_all(void)
{
	for (size_t i = 0; i < PEERS; i++) {
		expect(peers[i], GT_MSG_PLAN);
		answer(peers[i], GT_WHAT_PLAN_TAKEN, 100);
	}
}

static void run_until_done(void)
{
	int before = done;

	while (done == before)
		uv_run(&loop, UV_RUN_ONCE);
}

static const struct gt_plan *committed(size_t i)
{
	return &gt_client_info(collector.clients[i])->plans.list[0];
}

static void wait_for_commit(void)
{
	for (size_t i = 0; i < collector.client_count; i++)
		while (!committed(i)->active)
			uv_run(&loop, UV_RUN_ONCE);
}

/* ---- tests ---- */

static void all_take_it(void **state)
{
	(void)state;
	join();
	begin(&soon);
	take_all();
	run_until_done();
	assert_int_equal(result.rc, 0);
	assert_int_equal(result.ranks, PEERS);
	assert_int_equal(result.plan.first_step, 103); /* two steps of room, and the warm-up */
	assert_int_equal(result.plan.active, 3);
	assert_int_equal(result.plan.cycle, 0);
	wait_for_commit();
	for (size_t i = 0; i < PEERS; i++)
		assert_int_equal(committed(i)->first_step, 103);
	/* another one only when this one is over */
	assert_int_equal(gt_trigger_begin(&trigger, &soon, &err), -EBUSY);
	assert_string_equal(err.msg, "a window of steps 103 to 105 is on its way");
	report_step(106, GT_STEP_API);
	begin(&soon);
	take_all();
	run_until_done();
	assert_int_equal(result.plan.cycle, 1);
	assert_int_equal(result.plan.first_step, 109);
	assert_int_equal(left_out, 0);
}

/* Taken back from all, and tried again further on. */
static void one_is_late(void **state)
{
	(void)state;
	join();
	begin(&soon);
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_PLAN);
	answer(peers[0], GT_WHAT_PLAN_TAKEN, 100);
	answer(peers[1], GT_WHAT_PLAN_TAKEN, 100);
	report_step(150, GT_STEP_API);
	answer(peers[2], GT_WHAT_PLAN_LATE, 150);
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_CANCEL);
	take_all();
	run_until_done();
	assert_int_equal(result.rc, 0);
	assert_true(result.plan.first_step > 153); /* the more, the faster steps were meanwhile */
	assert_int_equal(result.plan.cycle, 0);
	assert_int_equal(done, 1);
}

static void a_fixed_step_is_late(void **state)
{
	const struct gt_trigger_request at = {
		.active = 1, .warmup = 1, .at = GT_AT_STEP, .step = 101
	};

	(void)state;
	join();
	begin(&at);
	for (size_t i = 0; i < PEERS; i++) {
		expect(peers[i], GT_MSG_PLAN);
		assert_int_equal(plan.first_step, 101);
		answer(peers[i], i ? GT_WHAT_PLAN_TAKEN : GT_WHAT_PLAN_LATE, 100);
	}
	run_until_done();
	assert_int_equal(result.rc, -ETIME);
	assert_true(result.late);
	assert_non_null(
		strstr(result.err.msg, "is in step 100, and the window would begin in step 100"));
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_CANCEL);
	for (size_t i = 0; i < PEERS; i++)
		assert_int_equal(committed(i)->active, 0);
}

/* Also where it would overlap a window that is over, or the schedule. */
static void a_fixed_step_is_over(void **state)
{
	struct gt_trigger_request at = { .active = 1, .warmup = 1, .at = GT_AT_STEP, .step = 104 };

	(void)state;
	join();
	begin(&soon);
	take_all();
	run_until_done();
	wait_for_commit();
	report_step(200, GT_STEP_API);
	begin(&at);
	run_until_done();
	assert_int_equal(result.rc, -ETIME);
	assert_true(result.late);
	assert_non_null(strstr(result.err.msg, "step 104 is over: "));
	assert_non_null(strstr(result.err.msg, " is in step 200"));
	at.step = 200;
	begin(&at);
	run_until_done();
	assert_int_equal(result.rc, -ETIME);
	assert_non_null(strstr(result.err.msg, "step 200 is too near: "));
	at.step = 300;
	begin(&at);
	take_all();
	run_until_done();
	assert_int_equal(result.rc, 0);
}

static void after_so_many(void **state)
{
	const struct gt_trigger_request after = { .active = 1, .at = GT_AT_AFTER, .step = 40 };

	(void)state;
	join();
	begin(&after);
	take_all();
	run_until_done();
	assert_int_equal(result.plan.first_step, 140);
}

/* It holds nobody for longer than a while. */
static void one_says_nothing(void **state)
{
	(void)state;
	join();
	begin(&soon);
	for (size_t i = 0; i < PEERS; i++) {
		expect(peers[i], GT_MSG_PLAN);
		if (i)
			answer(peers[i], GT_WHAT_PLAN_TAKEN, 100);
	}
	run_until_done();
	assert_int_equal(result.rc, 0);
	assert_int_equal(result.ranks, PEERS - 1);
	assert_int_equal(left_out, 1);
	expect(peers[0], GT_MSG_CANCEL);
}

/* Nobody has ended then, nor did anybody not answer. */
static void given_up(void **state)
{
	(void)state;
	join();
	gt_trigger_give_up(&trigger, -ESHUTDOWN, "the session was stopped");
	assert_int_equal(done, 0);
	begin(&soon);
	gt_trigger_give_up(&trigger, -ESHUTDOWN, "the session was stopped");
	assert_int_equal(done, 1);
	begin(&soon);
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_PLAN);
	gt_trigger_give_up(&trigger, -ESHUTDOWN, "the session was stopped");
	assert_int_equal(done, 2);
	assert_int_equal(result.rc, -ESHUTDOWN);
	assert_string_equal(result.err.msg, "the session was stopped");
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_CANCEL);
	assert_int_equal(left_out, 0);
}

static bool one_can_be_asked(void)
{
	for (size_t i = 0; i < collector.client_count; i++)
		if (gt_client_can_plan(collector.clients[i]) &&
		    gt_client_info(collector.clients[i])->step_source)
			return true;
	return false;
}

/*
 * Workers that are started anew, while the files of those before are not complete yet: neither the
 * steps nor the windows of these hold up a new one, whose number is another one all the same.
 */
static void others_have_ended(void **state)
{
	unsigned int ranks;
	int again;

	(void)state;
	join();
	begin(&soon);
	take_all();
	run_until_done();
	wait_for_commit();
	report_step(104, GT_STEP_API);
	for (size_t i = 0; i < PEERS; i++)
		gt_client_stop(collector.clients[i], "a test");
	assert_int_equal(gt_trigger_shown_step(&trigger, &ranks), 104);
	assert_int_equal(ranks, PEERS);
	assert_int_equal(gt_trigger_begin(&trigger, &soon, &err), -ESRCH);
	report_step(10, GT_STEP_API);
	connect_one(&again);
	while (!one_can_be_asked())
		uv_run(&loop, UV_RUN_ONCE);
	begin(&soon);
	expect(again, GT_MSG_PLAN);
	answer(again, GT_WHAT_PLAN_TAKEN, 10);
	run_until_done();
	assert_int_equal(result.rc, 0);
	assert_int_equal(result.ranks, 1);
	assert_int_equal(result.plan.first_step, 13);
	assert_int_equal(result.plan.cycle, 1);
	close(again);
}

static void prepared(void **state)
{
	const struct gt_trigger_request request = {
		.active = 2, .warmup = 1, .at = GT_AT_STEP, .step = 500, .cycle = 7, .prepare = true
	};

	(void)state;
	join();
	begin(&request);
	assert_false(gt_trigger_decide(&trigger, true)); /* too early */
	take_all();
	run_until_done();
	assert_int_equal(result.plan.cycle, 7);
	assert_int_equal(gt_trigger_begin(&trigger, &soon, &err), -EBUSY);
	assert_true(gt_trigger_decide(&trigger, false));
	assert_false(gt_trigger_decide(&trigger, true));
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_CANCEL);
	/* given up while it is asked for */
	begin(&request);
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_PLAN);
	assert_true(gt_trigger_decide(&trigger, false));
	for (size_t i = 0; i < PEERS; i++)
		expect(peers[i], GT_MSG_CANCEL);
	begin(&request);
	take_all();
	run_until_done();
	assert_true(gt_trigger_decide(&trigger, true));
	wait_for_commit();
	assert_int_equal(committed(0)->cycle, 7);
	assert_int_equal(gt_trigger_next_cycle(&trigger, 600), 8);
	assert_int_equal(done, 2);
}

static void refused(void **state)
{
	const struct gt_trigger_request at = { .active = 5, .at = GT_AT_STEP, .step = 298 };

	(void)state;
	assert_int_equal(gt_trigger_begin(&trigger, &soon, &err), -ESRCH); /* nobody is there */
	report_step(fake.report.step, GT_STEP_NONE);
	join();
	assert_int_equal(gt_trigger_begin(&trigger, &soon, &err), -ENODATA);
	assert_non_null(strstr(err.msg, "try again when 'gtrace ps' shows ranks"));
	report_step(fake.report.step, GT_STEP_CAPTURE);
	while (drained < 4 * PEERS)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(gt_trigger_begin(&trigger, &soon, &err), -EBUSY);
	report_step(fake.report.step, GT_STEP_API);
	while (drained < 6 * PEERS)
		uv_run(&loop, UV_RUN_ONCE);
	schedule = (struct gt_schedule){ .wait = 300, .active = 1 };
	begin(&at);
	run_until_done();
	assert_int_equal(result.rc, -EBUSY);
	assert_non_null(strstr(result.err.msg, "would overlap one of the session's schedule"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_take_it),
		TEST(one_is_late),
		TEST(a_fixed_step_is_late),
		TEST(a_fixed_step_is_over),
		TEST(after_so_many),
		TEST(one_says_nothing),
		TEST(given_up),
		TEST(others_have_ended),
		TEST(prepared),
		TEST(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
