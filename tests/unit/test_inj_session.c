/* Whole sessions: which programs are traced, what the collector hears, and when it is gone. */
#include "session_rig.h"
#include "events.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

/* ---- not traced ---- */

static void not_under_gtrace(void)
{
	unsetenv(GT_ENV_SOCKET);
	check(!inj_start(GT_DOOR_API));
	check(!inj_start(GT_DOOR_CUDA));
	check(!inj_alive() && !inj_recording());
	inj_step(GT_STEP_API, 0);
	inj_yield();
	inj_resume();
}

static void nobody_listens(void)
{
	setenv(GT_ENV_SOCKET, "/nonexistent/gtrace", 1);
	close(STDERR_FILENO);
	check(!inj_start(GT_DOOR_NVTX));
	inj_step(GT_STEP_API, 0);
}

static void too_long_a_path(void)
{
	char longest[300];

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	setenv(GT_ENV_SOCKET, longest, 1);
	close(STDERR_FILENO);
	check(!inj_start(GT_DOOR_PYTHON));
}

static void bad_schedule(void)
{
	setenv(GT_ENV_SCHEDULE, "active=nonsense", 1);
	close(STDERR_FILENO);
	check(!inj_start(GT_DOOR_PYTHON));
}

static void programs_that_are_not_traced(void **state)
{
	static void (*const programs[])(void) = { not_under_gtrace, nobody_listens, too_long_a_path,
						  bad_schedule };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct target target;

		start(&target, programs[i]);
		assert_int_equal(finish(&target), 0);
	}
}

/* ---- the schedule ---- */

static void three_windows(void)
{
	setenv(GT_ENV_SCHEDULE, "skip_first=1,wait=1,warmup=1,active=2,repeat=2", 1);
	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	setenv("RANK", "3", 1);
	setenv("WORLD_SIZE", "8", 1);
	check(inj_start(GT_DOOR_API));
	check(inj_start(GT_DOOR_NVTX));
	check(inj_alive() && !inj_recording());
	for (int i = 0; i < 20; i++) {
		wait_for_go();
		inj_step(GT_STEP_API, 0);
	}
}

static void follows_the_schedule(void **state)
{
	struct gt_msg_phase phase;
	char msg[GT_MSG_MAX];
	struct target target;
	int type;

	(void)state;
	start(&target, three_windows);
	meet(&target);
	assert_int_equal(target.hello.pid, target.pid);
	assert_int_equal(target.hello.rank, 3);
	assert_int_equal(target.hello.world_size, 8);
	assert_int_equal(target.hello.rank_source, GT_RANK_ENV);
	assert_int_equal(target.hello.door, GT_DOOR_API);
	assert_int_equal(target.arena->magic, GT_ARENA_MAGIC);
	assert_int_equal(target.arena->mode, GT_MODE_STEPS);
	for (int i = 0; i < 20; i++)
		go(&target);
	for (uint64_t cycle = 0; cycle < 2; cycle++) {
		phase = next_phase(&target, GT_WHAT_OPEN);
		assert_int_equal(phase.cycle, cycle);
		assert_int_equal(phase.value, 3 + 4 * cycle);
		if (!cycle) {
			phase = next_phase(&target, GT_WHAT_CLOSE);
			assert_int_equal(phase.value, 5);
			continue;
		}
		phase = next_phase(&target, GT_WHAT_CLOSE);
		assert_int_equal(phase.cycle, cycle);
		assert_int_equal(phase.value, 9);
	}
	do
		type = receive(&target, msg);
	while (type == GT_MSG_PHASE);
	assert_int_equal(type, GT_MSG_BYE);
	assert_int_equal(receive(&target, msg), 0);
	assert_int_equal(target.arena->step, 20);
	assert_int_equal(target.arena->dropped_events, 0);
	assert_int_equal(finish(&target), 0);
}

/* ---- a program whose first thread is not its last ---- */

static void *steps_to_its_end(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		wait_for_go();
		inj_step(GT_STEP_API, 0);
	}
	return NULL;
}

/*
 * A signal still ends the program, whatever thread of its does this. Instead of the checks for
 * leaks, which would find those of the test it was forked from.
 */
static void quit(void)
{
	sigset_t blocked;

	check(!pthread_sigmask(SIG_SETMASK, NULL, &blocked) && !sigismember(&blocked, SIGTERM));
	_exit(0);
}

static void first_thread_ends(void)
{
	pthread_t thread;

	check(!atexit(quit)); /* behind the injection's own, which is registered later */
	setenv(GT_ENV_SCHEDULE, "skip_first=1,wait=1,warmup=1,active=100,repeat=1", 1);
	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	check(inj_start(GT_DOOR_API));
	check(!pthread_create(&thread, NULL, steps_to_its_end, NULL));
	pthread_exit(NULL);
}

static void ends_with_its_last_thread(void **state)
{
	char msg[GT_MSG_MAX];
	struct target target;
	int type;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* it has a thread of its own, which stays */
#endif
	start(&target, first_thread_ends);
	meet(&target);
	for (int i = 0; i < 20; i++)
		go(&target);
	assert_int_equal(next_phase(&target, GT_WHAT_OPEN).value, 3);
	assert_int_equal(next_phase(&target, GT_WHAT_CLOSE).value, 21);
	do
		type = receive(&target, msg);
	while (type == GT_MSG_PHASE);
	assert_int_equal(type, GT_MSG_BYE);
	assert_int_equal(receive(&target, msg), 0);
	assert_int_equal(finish(&target), 0);
}

/* ---- children ---- */

static int clone_child(void)
{
	/* Without the C library, and so without its fork handlers. */
	return (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void check_inert(void)
{
	check(!inj_alive() && !inj_recording());
	check(!inj_start(GT_DOOR_NVTX));
	check(!inj_intern("child", 5));
	inj_step(GT_STEP_API, 0);
	inj_yield();
	inj_resume();
}

static void forks(void)
{
	int status;
	pid_t pid;

	setenv(GT_ENV_STEP_SOURCE, "none", 1);
	check(inj_start(GT_DOOR_API) && inj_recording());
	wait_for_go();
	pid = fork();
	if (!pid) {
		check_inert();
		exit(7); /* also the exit handler is inert */
	}
	check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	pid = clone_child();
	if (!pid) {
		check_inert();
		_exit(8);
	}
	check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 8);
	check(inj_alive() && inj_recording());
}

static void children_are_inert(void **state)
{
	char msg[GT_MSG_MAX];
	struct target target;
	uint64_t seq;
	int type, byes = 0;

	(void)state;
	start(&target, forks);
	meet(&target);
	next_phase(&target, GT_WHAT_OPEN);
	seq = target.arena->seq;
	go(&target);
	while ((type = receive(&target, msg)))
		byes += type == GT_MSG_BYE;
	assert_int_equal(byes, 1);
	assert_int_equal(target.arena->seq, seq);
	assert_int_equal(target.arena->step, 0);
	assert_int_equal(finish(&target), 0);
}

/* ---- descriptors ---- */

/* That the program closes what another thread uses is the point of it. */
GT_EXPORT const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:closes_everything\n";
}

static int files[600];

static void closes_everything(void)
{
	char template[] = "/tmp/gtrace-test-XXXXXX";
	struct stat st;
	int fd;

	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	check(inj_start(GT_DOOR_API));
	wait_for_go();
	for (fd = 3; fd < 1024; fd++)
		if (fd != go_fd)
			close(fd);
	/* Other files take all the numbers that were ours. */
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(template, sizeof(template), "/tmp/gtrace-test-XXXXXX");
		files[i] = mkstemp(template);
		check(files[i] >= 0 && !unlink(template));
	}
	for (int i = 0; i < 20; i++)
		inj_step(GT_STEP_API, 0);
	inj_log(GT_LOG_DEBUG, "nobody hears this");
	inj_yield();
	inj_resume();
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		check(!fstat(files[i], &st) && st.st_size == 0);
}

static void descriptors_may_be_closed(void **state)
{
	struct target target;

	(void)state;
	start(&target, closes_everything);
	meet(&target);
	go(&target);
	assert_int_equal(finish(&target), 0);
}

/* ---- a collector that stops, or dies ---- */

static void steps_for_ever(void)
{
	setenv(GT_ENV_SCHEDULE, "skip_first=0,wait=0,warmup=1,active=1,repeat=0", 1);
	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	inj_start(GT_DOOR_API); /* false when it was told to stop before it returned */
	while (inj_alive()) {
		inj_step(GT_STEP_API, 0);
		/* until the control thread has followed, which nobody tells when that has ended */
		inj_control_wait(inj_control_post(), 50);
	}
	check(!inj_recording());
	inj_step(GT_STEP_API, 0);
	/* The control thread has ended, or is about to: who comes this late does not wait for it.
	 */
	check(inj_control_wait(inj_control_post(), WAIT_MS));
}

static void collector_dies(void **state)
{
	struct target target;

	(void)state;
	start(&target, steps_for_ever);
	meet(&target);
	next_phase(&target, GT_WHAT_OPEN);
	shutdown(target.sock, SHUT_RDWR);
	assert_int_equal(finish(&target), 0);
}

static void collector_says_stop(void **state)
{
	struct gt_msg_cycle stop = { .hdr = { GT_WIRE_MAGIC, GT_WIRE_VERSION, GT_MSG_STOP,
					      sizeof(stop), 0 } };
	struct target target;

	(void)state;
	start(&target, steps_for_ever);
	meet(&target);
	assert_int_equal(send(target.sock, &stop, sizeof(stop), 0), sizeof(stop));
	assert_int_equal(finish(&target), 0);
}

/* ---- plans ---- */

static void on_demand(void)
{
	setenv(GT_ENV_SCHEDULE, "on_demand=1", 1);
	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	check(inj_start(GT_DOOR_API) && !inj_recording());
	for (int i = 0; i < 20; i++) {
		wait_for_go();
		inj_step(GT_STEP_API, 0);
	}
}

/* As the collector does it: whoever idles for a second hears of it at once. */
static void tell(struct target *target, const void *msg, size_t size)
{
	assert_int_equal(send(target->sock, msg, size, 0), size);
	atomic_fetch_add(&target->arena->request, 1);
	syscall(SYS_futex, &target->arena->request, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void propose(struct target *target, uint64_t cycle, uint32_t first_step)
{
	const struct gt_msg_plan plan = {
		.hdr = { GT_WIRE_MAGIC, GT_WIRE_VERSION, GT_MSG_PLAN, sizeof(plan), 0 },
		.cycle = cycle,
		.first_step = first_step,
		.warmup = 1,
		.active = 2,
		.id = first_step,
	};

	tell(target, &plan, sizeof(plan));
}

static void go_to(struct target *target, uint32_t step)
{
	for (uint32_t i = atomic_load(&target->arena->step); i < step; i++)
		go(target);
	while (atomic_load(&target->arena->step) < step)
		sched_yield();
}

static void windows_on_demand(void **state)
{
	const struct gt_msg_cycle cancel = {
		.hdr = { GT_WIRE_MAGIC, GT_WIRE_VERSION, GT_MSG_CANCEL, sizeof(cancel), 0 },
		.cycle = 1,
	};
	struct gt_msg_phase phase;
	struct target target;

	(void)state;
	start(&target, on_demand);
	meet(&target);
	go_to(&target, 3);
	propose(&target, 0, 4); /* its warm-up would be this step */
	phase = next_phase(&target, GT_WHAT_PLAN_LATE);
	assert_int_equal(phase.cycle, 4); /* its id */
	assert_int_equal(phase.value, 3);
	propose(&target, 0, 5);
	assert_int_equal(next_phase(&target, GT_WHAT_PLAN_TAKEN).value, 3);
	go_to(&target, 7);
	assert_int_equal(next_phase(&target, GT_WHAT_OPEN).value, 5);
	assert_int_equal(next_phase(&target, GT_WHAT_CLOSE).value, 7);
	/* one that is taken back in the middle: of it no end is told */
	propose(&target, 1, 9);
	assert_int_equal(next_phase(&target, GT_WHAT_PLAN_TAKEN).cycle, 9);
	go_to(&target, 9);
	assert_int_equal(next_phase(&target, GT_WHAT_OPEN).cycle, 1);
	tell(&target, &cancel, sizeof(cancel));
	propose(&target, 1, 12); /* the next one with its number */
	assert_int_equal(next_phase(&target, GT_WHAT_PLAN_TAKEN).cycle, 12);
	go_to(&target, 14);
	phase = next_phase(&target, GT_WHAT_OPEN);
	assert_int_equal(phase.cycle, 1);
	assert_int_equal(phase.value, 12);
	phase = next_phase(&target, GT_WHAT_CLOSE);
	assert_int_equal(phase.cycle, 1);
	assert_int_equal(phase.value, 14);
	go_to(&target, 20);
	assert_int_equal(finish(&target), 0);
}

/* ---- the program's own profiler ---- */

static void yields(void)
{
	setenv(GT_ENV_SCHEDULE, "skip_first=0,wait=0,warmup=1,active=2,repeat=0", 1);
	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	check(inj_start(GT_DOOR_API));
	inj_step(GT_STEP_API, 0);
	wait_for_go();
	check(inj_recording());
	inj_yield();
	inj_yield();
	check(!inj_recording());
	inj_resume();
	for (int i = 0; i < 3; i++)
		inj_step(GT_STEP_API, 0);
	check(!inj_recording());
	inj_resume();
	for (int i = 0; i < 3; i++)
		inj_step(GT_STEP_API, 0);
	wait_for_go();
}

static void makes_way(void **state)
{
	struct gt_msg_phase phase;
	struct target target;

	(void)state;
	start(&target, yields);
	meet(&target);
	assert_int_equal(next_phase(&target, GT_WHAT_OPEN).cycle, 0);
	go(&target);
	phase = next_phase(&target, GT_WHAT_YIELD);
	assert_int_equal(phase.cycle, 0);
	assert_int_equal(phase.value, 1);
	/* The next cycle's turn comes while the program's profiler runs. */
	phase = next_phase(&target, GT_WHAT_LEFT_OUT);
	assert_int_equal(phase.cycle, 1);
	assert_int_equal(phase.value, 4);
	next_phase(&target, GT_WHAT_RESUME);
	assert_int_equal(next_phase(&target, GT_WHAT_OPEN).cycle, 2);
	go(&target);
	assert_int_equal(finish(&target), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_that_are_not_traced),
		cmocka_unit_test(follows_the_schedule),
		cmocka_unit_test(ends_with_its_last_thread),
		cmocka_unit_test(children_are_inert),
		cmocka_unit_test(descriptors_may_be_closed),
		cmocka_unit_test(collector_dies),
		cmocka_unit_test(collector_says_stop),
		cmocka_unit_test(windows_on_demand),
		cmocka_unit_test(makes_way),
	};

	return cmocka_run_group_tests(tests, listen_here, stop_listening);
}
