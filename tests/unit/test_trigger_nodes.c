/*
 * The requester of a rendezvous, between sessions that are played here: they answer whenever it
 * pauses, and the clock is one that only its pauses move.
 */
#include "base.h"
#include "clock.h"
#include "remove_tree.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static uint64_t clock_ms;

static uint64_t played_ms(clockid_t clock)
{
	(void)clock;
	return clock_ms;
}

static int play(const struct timespec *pause, struct timespec *rest);

static void *held; /* what it has when it gives up, and the program would end */

static void *hold(void *old, size_t size)
{
	held = realloc(old, size);
	return held;
}

#define gt_clock_ms played_ms
#define nanosleep   play
#define realloc     hold
#include "../../cmd/trigger_nodes.c"

#define STALE_FILE_S 100

static char dir[64];

/* ---- stand-ins for cmd/die.c ---- */

static jmp_buf ended;
static char said[1024], warned[1024];

void die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
	assert_int_equal(status, STATUS_FAILURE);
	longjmp(ended, 1);
}

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
}

void warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(warned, sizeof(warned), fmt, args);
	va_end(args);
}

/* ---- the sessions ---- */

struct session {
	const char *name;
	const char *host;
	const char *space; /* NULL: it tells none */
	pid_t pid;
	uint64_t step;
	uint64_t rate;     /* in 1000 s */
	const char *say;   /* to "prepare"; NULL: taken */
	unsigned int late; /* so many times it is late first */
	bool mute;
};

static struct session sessions[4];
static size_t session_count;
static struct gt_fields asked; /* the request as last seen */
static bool another_comes;     /* a request of somebody else, next */

static void put(const char *name, const char *text, size_t len)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

static void write_session(struct session *session)
{
	char phase[16] = "", attempt[24] = "", request_id[64] = "";
	struct gt_fields fields = { .len = 0 };
	const char *answer = "here";
	struct gt_err err;

	gt_fields_get(&asked, "request", request_id, sizeof(request_id));
	gt_fields_get(&asked, "attempt", attempt, sizeof(attempt));
	gt_fields_get(&asked, "phase", phase, sizeof(phase));
	if (!strcmp(phase, "prepare") && session->late) {
		session->late--;
		answer = "late";
	} else if (!strcmp(phase, "prepare")) {
		answer = session->say ? session->say : "taken";
	} else if (!strcmp(phase, "commit")) {
		answer = "committed";
	}
	gt_fields_add(&fields, "host", "%s", session->host);
	gt_fields_add(&fields, "pid", "%d", (int)session->pid);
	if (session->space)
		gt_fields_add(&fields, "space", "%s", session->space);
	gt_fields_add(&fields, "ranks", "4");
	gt_fields_add(&fields, "part", "4");
	gt_fields_add(&fields, "step", "%llu", (unsigned long long)session->step);
	gt_fields_add(&fields, "rate", "%llu", (unsigned long long)session->rate);
	gt_fields_add(&fields, "cycle", "%llu", (unsigned long long)session->step / 100);
	gt_fields_add(&fields, "active", "3");
	gt_fields_add(&fields, "warmup", "1");
	gt_fields_add(&fields, "request", "%s", request_id);
	gt_fields_add(&fields, "attempt", "%s", attempt);
	gt_fields_add(&fields, "phase", "%s", phase);
	gt_fields_add(&fields, "answer", "%s", answer);
	gt_fields_add(&fields, "why", "it is busy");
	assert_int_equal(gt_rendezvous_write(dir, session->name, &fields, &err), 0);
}

/* Everybody looks at the request. */
static int play(const struct timespec *pause, struct timespec *rest)
{
	(void)rest;
	clock_ms += (uint64_t)pause->tv_nsec / GT_NSEC_PER_MSEC;
	if (another_comes) {
		put(GT_RENDEZVOUS_REQUEST, "request other\nattempt 0\nphase look\n", 35);
		return 0;
	}
	assert_int_equal(gt_rendezvous_read(dir, GT_RENDEZVOUS_REQUEST, &asked), 0);
	for (size_t i = 0; i < session_count; i++)
		if (!sessions[i].mute)
			write_session(&sessions[i]);
	return 0;
}

static struct session *add(const char *name, uint64_t step)
{
	struct session *session = &sessions[session_count++];

	*session = (struct session){ .name = name, .host = "elsewhere", .pid = 1, .step = step };
	asked.len = 0;
	write_session(session);
	return session;
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/gtrace-test-XXXXXX");
	session_count = 0;
	*said = *warned = '\0';
	clock_ms = 1000;
	another_comes = false;
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	(void)state;
	return remove_tree(dir);
}

/* false: it gave up. */
static bool trigger_at(enum gt_trigger_at at, uint64_t step)
{
	const struct trigger_nodes wanted = {
		.dir = dir, .at = at, .step = step, .active = UINT64_MAX, .warmup = UINT64_MAX
	};

	held = NULL;
	if (setjmp(ended)) {
		free(held);
		return false;
	}
	assert_int_equal(trigger_nodes(&wanted), 0);
	return true;
}

static bool trigger(void)
{
	return trigger_at(GT_AT_SOON, 0);
}

static void expect(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("no '%s' in '%s'", words, text);
}

/* ---- tests ---- */

/* The first step is ahead of the foremost, by the fastest. */
static void takes_the_most(void **state)
{
	uint64_t value = 0;

	(void)state;
	add(GT_RENDEZVOUS_SESSION "a", 100)->rate = 5000;
	add(GT_RENDEZVOUS_SESSION "b", 250)->rate = 2000;
	assert_true(trigger());
	assert_true(gt_fields_number(&asked, "first", &value));
	assert_int_equal(value, 250 + LEAD_STEPS + 5 + 1);
	assert_true(gt_fields_is(&asked, "cycle", "2"));
	assert_string_equal(said, "steps 258 to 260 of 8 ranks in 2 sessions will be traced");
	assert_string_equal(warned, "");
	assert_true(trigger_at(GT_AT_AFTER, 40));
	expect(said, "steps 290 to 292");
	assert_true(trigger_at(GT_AT_STEP, 7000));
	expect(said, "steps 7000 to 7002");
}

/* It is waited for as long as was said, and no longer; the others have their window. */
static void one_says_nothing(void **state)
{
	struct session *mute;

	(void)state;
	add(GT_RENDEZVOUS_SESSION "a", 100);
	mute = add(GT_RENDEZVOUS_SESSION "b", 9000);
	mute->mute = true;
	assert_true(trigger());
	expect(warned, "the session on elsewhere (pid 1) does not answer: it is left out");
	expect(said, "steps 103 to 105 of 4 ranks in 1 session");
	assert_true(gt_fields_is(&asked, "without-" GT_RENDEZVOUS_SESSION "b", "1"));
	assert_true(clock_ms >= 1000 + LOOK_MS);
	assert_true(clock_ms < 1000 + LOOK_MS + 10 * POLL_MS);
	sessions[0].mute = true;
	assert_false(trigger());
	assert_string_equal(said, "trigger: no session answers");
}

static void one_is_late(void **state)
{
	struct session *late;

	(void)state;
	add(GT_RENDEZVOUS_SESSION "a", 100)->rate = 10000;
	late = add(GT_RENDEZVOUS_SESSION "b", 100);
	late->late = 1;
	assert_true(trigger());
	assert_true(gt_fields_is(&asked, "attempt", "2"));
	expect(said, "steps 123 to 125"); /* twice as far ahead */
	late->late = ATTEMPTS;
	assert_false(trigger());
	expect(said, "(pid 1): it is busy");
	assert_true(gt_fields_is(&asked, "attempt", "4"));
	late->late = 1;
	assert_false(trigger_at(GT_AT_STEP, 200)); /* another one was not asked for */
	late->say = "failed";
	assert_false(trigger());
	expect(said, "(pid 1): it is busy");
}

/* What is no session, or that of a dead one, is nobody to wait for. */
static void files_of_others(void **state)
{
	static char text[GT_FIELDS_MAX + 8];
	char path[4096], name[256], space[GT_RENDEZVOUS_SPACE_MAX];
	const struct timespec old[2] = { { .tv_sec = time(NULL) - STALE_FILE_S },
					 { .tv_sec = time(NULL) - STALE_FILE_S } };
	struct session *dead, *stale;

	(void)state;
	add(GT_RENDEZVOUS_SESSION "a", 100);
	memset(text, 'x', sizeof(text));
	memcpy(text, "host h\npid 1\nx ", 15);
	text[sizeof(text) - 1] = '\n';
	put(GT_RENDEZVOUS_SESSION "too-long", text, sizeof(text));
	put(GT_RENDEZVOUS_SESSION "torn", "host h\npid", 10);
	put(GT_RENDEZVOUS_SESSION "empty", "", 0);
	put(GT_RENDEZVOUS_SESSION "no-pid", "host h\n", 7);
	snprintf(name, sizeof(name), GT_RENDEZVOUS_SESSION "%0200d", 0);
	put(name, "host h\npid 1\n", 13);
	if (!geteuid()) {
		put(GT_RENDEZVOUS_SESSION "other", "host h\npid 1\n", 13);
		snprintf(path, sizeof(path), "%s/" GT_RENDEZVOUS_SESSION "other", dir);
		assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
	}
	stale = add(GT_RENDEZVOUS_SESSION "stale", 9000);
	stale->mute = true;
	snprintf(path, sizeof(path), "%s/%s", dir, stale->name);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	gt_rendezvous_pid_space(space, sizeof(space));
	dead = add(GT_RENDEZVOUS_SESSION "dead", 9000);
	dead->mute = true;
	dead->space = space;
	dead->pid = fork();
	if (!dead->pid)
		_exit(0);
	assert_int_equal(waitpid(dead->pid, NULL, 0), dead->pid);
	write_session(dead);
	assert_true(trigger());
	assert_string_equal(warned, "");
	expect(said, "steps 103 to 105 of 4 ranks in 1 session");
	assert_true(clock_ms < 1000 + LOOK_MS);
	snprintf(path, sizeof(path), "%s/%s", dir, dead->name);
	assert_int_equal(access(path, F_OK), -1); /* of this machine that is certain */
}

/* A container has the name of its host, but pids of its own: who is dead here may live there. */
static void pids_of_a_container(void **state)
{
	char host[HOST_NAME_MAX + 1] = "";
	struct session *one;

	(void)state;
	gethostname(host, sizeof(host) - 1);
	one = add(GT_RENDEZVOUS_SESSION "a", 100);
	one->host = host;
	one->space = "00000000-0000-0000-0000-000000000000 pid:[1]";
	one->pid = fork();
	if (!one->pid)
		_exit(0);
	assert_int_equal(waitpid(one->pid, NULL, 0), one->pid);
	write_session(one);
	assert_true(trigger());
	expect(said, "of 4 ranks in 1 session");
}

static void nobody_is_there(void **state)
{
	(void)state;
	assert_false(trigger());
	expect(said, "there is no session of 'gtrace run --rendezvous' in '");
	assert_int_equal(clock_ms, 1000);
	add(GT_RENDEZVOUS_SESSION "a", 100);
	another_comes = true;
	assert_false(trigger());
	assert_string_equal(said, "trigger: another 'gtrace trigger' has come in between");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(takes_the_most),  TEST(one_says_nothing),    TEST(one_is_late),
		TEST(files_of_others), TEST(pids_of_a_container), TEST(nobody_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
