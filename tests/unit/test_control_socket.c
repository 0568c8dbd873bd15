/* The socket by which a session is asked, in a directory of the test's own. */
#include "base.h"
#include "control_socket.h"
#include "env.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/gtrace-test-XXXXXX";
static char sessions[64];
static uv_loop_t loop;
static struct gt_control control;
static struct gt_control_peer *waiting[64];
static size_t waiting_count;
static int asked;

static char *lookup(const char *name)
{
	return strcmp(name, GT_ENV_RUNTIME_DIR) ? NULL : dir;
}

static void on_asked(void *ctx, struct gt_control_peer *peer, const struct gt_fields *question)
{
	struct gt_fields answer = { .len = 0 };

	(void)ctx;
	asked++;
	if (gt_fields_is(question, "do", "wait")) {
		waiting[waiting_count++] = peer;
		return;
	}
	gt_fields_add(&answer, "echo", "%.*s", (int)question->len, question->text);
	gt_control_answer(peer, &answer);
}

static int start(void **state)
{
	struct gt_err err;

	(void)state;
	asked = 0;
	waiting_count = 0;
	control.asked = on_asked;
	return uv_loop_init(&loop) || gt_control_open(&control, &loop, lookup, &err);
}

static int stop(void **state)
{
	(void)state;
	gt_control_close(&control);
	uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop) || !access(control.path, F_OK);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(sessions, sizeof(sessions), "%s/gtrace", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(sessions) || rmdir(dir);
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void *ask(void *rc)
{
	struct gt_fields question = { .len = 0 }, answer;
	struct gt_err err;

	gt_fields_add(&question, "do", "echo");
	*(int *)rc = gt_control_ask(control.path, &question, 20000, &answer, &err);
	if (!*(int *)rc && !gt_fields_is(&answer, "echo", "do echo "))
		*(int *)rc = 1;
	return NULL;
}

static void asks(void **state)
{
	pthread_t thread;
	int rc = -1;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, ask, &rc), 0);
	while (!asked)
		uv_run(&loop, UV_RUN_ONCE);
	pthread_join(thread, NULL);
	assert_int_equal(rc, 0);
}

/* Those of containers that share a directory can have one pid: each is found, none takes another's
 * name. */
static void one_pid_twice(void **state)
{
	struct gt_control other = { .asked = on_asked };
	char path[GT_CONTROL_PATH_MAX];
	struct gt_err err;

	(void)state;
	assert_int_equal(gt_control_open(&other, &loop, lookup, &err), 0);
	assert_string_not_equal(other.path, control.path);
	snprintf(path, sizeof(path), "%s", other.path);
	close(connect_to(path));
	close(connect_to(control.path));
	gt_control_close(&other);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(access(path, F_OK), -1);
	asks(state);
}

/* What one that was killed has left is no reason for another name. */
static void one_pid_of_a_dead_session(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char path[GT_CONTROL_PATH_MAX];
	struct gt_err err;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(path, sizeof(path), "%s", control.path);
	gt_control_close(&control);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(gt_control_open(&control, &loop, lookup, &err), 0);
	assert_string_equal(control.path, path);
	asks(state);
}

static void bytes_that_are_no_question(void **state)
{
	char byte;
	int fd;

	(void)state;
	fd = connect_to(control.path);
	assert_int_equal(send(fd, "do\0me", 5, 0), 5);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0) /* until it is closed */
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(asked, 0);
	close(fd);
}

/* Who asked is gone before the answer. */
static void gone_before_the_answer(void **state)
{
	struct gt_fields answer = { .len = 0 };
	int fd;

	(void)state;
	fd = connect_to(control.path);
	assert_int_equal(send(fd, "do wait\n", 8, 0), 8);
	while (!waiting_count)
		uv_run(&loop, UV_RUN_ONCE);
	close(fd);
	uv_run(&loop, UV_RUN_NOWAIT);
	gt_fields_add(&answer, "result", "ok");
	gt_control_answer(*waiting, &answer);
}

/* A question whose asker has given up meanwhile is not asked: he was told that it failed. */
static void gone_before_it_is_read(void **state)
{
	int gone, fd;

	(void)state;
	gone = connect_to(control.path);
	assert_int_equal(send(gone, "do wait\n", 8, 0), 8);
	close(gone);
	fd = connect_to(control.path);
	assert_int_equal(send(fd, "do wait\n", 8, 0), 8);
	while (!waiting_count)
		uv_run(&loop, UV_RUN_ONCE);
	for (int i = 0; i < 10; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(asked, 1);
	close(fd);
	for (size_t i = 0; i < waiting_count; i++)
		gt_control_answer(waiting[i], &(struct gt_fields){ .len = 0 });
}

static bool is_closed(int fd)
{
	char byte;

	return !recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
}

/* More than are listened to at once: the oldest make room for who has something to ask. */
static void many_that_say_nothing(void **state)
{
	pthread_t thread;
	int fds[100], rc = -1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_to(control.path);
	assert_int_equal(pthread_create(&thread, NULL, ask, &rc), 0);
	while (!asked)
		uv_run(&loop, UV_RUN_ONCE);
	pthread_join(thread, NULL);
	assert_int_equal(rc, 0);
	assert_true(is_closed(fds[0]));
	assert_false(is_closed(fds[ARRAY_SIZE(fds) - 20]));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	while (control.peer_count)
		uv_run(&loop, UV_RUN_ONCE);
}

/* All of them have asked and wait: nobody is dropped, and the session can end with them. */
static void many_that_wait(void **state)
{
	int fds[40];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = connect_to(control.path);
		assert_int_equal(send(fds[i], "do wait\n", 8, 0), 8);
	}
	while (asked < 32)
		uv_run(&loop, UV_RUN_ONCE);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(control.peer_count, 32);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		assert_false(is_closed(fds[i]));
	while (waiting_count)
		gt_control_answer(waiting[--waiting_count], &(struct gt_fields){ .len = 0 });
	while (asked < (int)ARRAY_SIZE(fds))
		uv_run(&loop, UV_RUN_ONCE);
	while (waiting_count)
		gt_control_answer(waiting[--waiting_count], &(struct gt_fields){ .len = 0 });
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

static int note(void *ctx, const char *path)
{
	snprintf(ctx, GT_CONTROL_PATH_MAX, "%s", path);
	return 1;
}

static void found(void **state)
{
	char path[GT_CONTROL_PATH_MAX] = "";

	(void)state;
	assert_int_equal(gt_control_each(lookup, note, path), 1);
	assert_string_equal(path, control.path);
}

static void others_may_enter(void **state)
{
	struct gt_control other = { .asked = on_asked };
	char path[GT_CONTROL_PATH_MAX] = "";
	struct gt_err err;

	(void)state;
	assert_int_equal(chmod(sessions, 0755), 0);
	assert_int_equal(gt_control_each(lookup, note, path), 0);
	assert_int_equal(gt_control_open(&other, &loop, lookup, &err), -EPERM);
	assert_int_equal(chmod(sessions, 0700), 0);
}

static char *lookup_none(const char *name)
{
	static char none[] = "/nonexistent/place";

	return strcmp(name, GT_ENV_RUNTIME_DIR) ? NULL : none;
}

static char *lookup_relative(const char *name)
{
	static char relative[] = "place";

	return strcmp(name, GT_ENV_RUNTIME_DIR) ? NULL : relative;
}

static void no_directory(void **state)
{
	struct gt_control other = { .asked = on_asked };
	struct gt_err err;

	(void)state;
	assert_int_equal(gt_control_open(&other, &loop, lookup_none, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "'/nonexistent/place/gtrace'"));
	assert_int_equal(gt_control_open(&other, &loop, lookup_relative, &err), -EINVAL);
	assert_non_null(strstr(err.msg, GT_ENV_RUNTIME_DIR));
}

static void nobody_listens(void **state)
{
	struct gt_fields question = { .len = 0 }, answer;
	char path[GT_CONTROL_PATH_MAX + 8];
	struct gt_err err;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(path, sizeof(path), "%s/1.session", sessions);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.100s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	gt_fields_add(&question, "do", "echo");
	assert_int_equal(gt_control_ask(path, &question, 100, &answer, &err), -ECONNREFUSED);
	unlink(path);
	assert_int_equal(gt_control_ask(path, &question, 100, &answer, &err), -ENOENT);
	/* it listens, and says nothing */
	assert_int_equal(gt_control_ask(control.path, &question, 1, &answer, &err), -ETIMEDOUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asks),
		TEST(one_pid_twice),
		TEST(one_pid_of_a_dead_session),
		TEST(bytes_that_are_no_question),
		TEST(gone_before_the_answer),
		TEST(gone_before_it_is_read),
		TEST(many_that_say_nothing),
		TEST(many_that_wait),
		TEST(found),
		TEST(others_may_enter),
		TEST(no_directory),
		TEST(nobody_listens),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
