/* A session that meets others in a directory: what it makes of the files there, whoever wrote them.
 */
#include "base.h"
#include "remove_tree.h"
#include "rendezvous.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define NOBODY 65534

static char dir[64];
static uv_loop_t loop;
static struct gt_rendezvous session;
static struct gt_fields fields; /* as last read */
static struct gt_err err;

/* what it was asked to do */
static int prepared, committed, dropped, looks;
static struct gt_trigger_request request;
static int prepare_rc;
static bool too_late;

static int on_prepare(void *ctx, const struct gt_trigger_request *wanted, struct gt_err *why)
{
	(void)ctx;
	prepared++;
	request = *wanted;
	return prepare_rc ? gt_err_set(why, prepare_rc, "it is busy") : 0;
}

static bool on_decide(void *ctx, bool commit)
{
	(void)ctx;
	committed += commit;
	dropped += !commit;
	return !too_late;
}

static void on_state(void *ctx, struct gt_rendezvous_state *state)
{
	(void)ctx;
	looks++;
	*state = (struct gt_rendezvous_state){
		.step = 250, .ranks = 4, .next_cycle = 2, .active = 3, .warmup = 1
	};
}

/* ---- the directory ---- */

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/gtrace-test-XXXXXX");
	prepared = committed = dropped = looks = prepare_rc = 0;
	too_late = false;
	return !mkdtemp(dir) || uv_loop_init(&loop);
}

static int remove_dir(void **state)
{
	(void)state;
	return uv_loop_close(&loop) || remove_tree(dir);
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text, size_t len)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

static int read_file(const char *name)
{
	return gt_rendezvous_read(dir, name, &fields);
}

static void written_is_read(void **state)
{
	struct gt_fields written = { .len = 0 };

	(void)state;
	assert_int_equal(read_file("file"), -ENOENT);
	gt_fields_add(&written, "key", "value");
	assert_int_equal(gt_rendezvous_write(dir, "file", &written, &err), 0);
	assert_int_equal(read_file("file"), 0);
	assert_true(gt_fields_is(&fields, "key", "value"));
	/* over what is no file of its own */
	assert_int_equal(mkdir(path_of("taken"), 0700), 0);
	put("taken/file", "", 0);
	assert_true(gt_rendezvous_write(dir, "taken", &written, &err) < 0);
	assert_int_equal(unlink(path_of("taken/file")), 0);
	assert_int_equal(rmdir(path_of("taken")), 0);
	assert_int_equal(unlink(path_of("file")), 0);
	assert_int_equal(gt_rendezvous_try(dir, &err), 0);
	assert_int_equal(rmdir(dir), 0); /* so nothing is left behind by any of these */
	assert_int_equal(gt_rendezvous_try(dir, &err), -ENOENT);
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void files_that_are_none(void **state)
{
	char text[GT_FIELDS_MAX + 1];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "key ", 4);
	text[GT_FIELDS_MAX - 2] = text[GT_FIELDS_MAX - 1] = '\n';
	put("whole", text, GT_FIELDS_MAX - 1);
	assert_int_equal(read_file("whole"), 0);
	text[GT_FIELDS_MAX - 2] = 'x';
	put("too-long", text, GT_FIELDS_MAX + 1); /* though its beginning is one */
	assert_int_equal(read_file("too-long"), -EBADMSG);
	put("torn", "key value\nother val", 19);
	assert_int_equal(read_file("torn"), -EBADMSG);
	put("binary", "key va\0ue\n", 10);
	assert_int_equal(read_file("binary"), -EBADMSG);
	assert_int_equal(mkdir(path_of("directory"), 0700), 0);
	assert_int_equal(read_file("directory"), -EBADMSG);
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	assert_int_equal(read_file("fifo"), -EBADMSG); /* and nobody is waited for */
	assert_int_equal(symlink("whole", path_of("link")), 0);
	assert_int_equal(read_file("link"), -ELOOP);
	memset(text, 'n', sizeof(text));
	text[GT_FIELDS_MAX] = '\0';
	assert_int_equal(read_file(text), -ENAMETOOLONG);
}

static void files_of_another_user(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	put("file", "key value\n", 10);
	assert_int_equal(read_file("file"), 0);
	assert_int_equal(chown(path_of("file"), NOBODY, (gid_t)-1), 0);
	assert_int_equal(read_file("file"), -EBADMSG);
}

/* ---- a session ---- */

static void begin(void)
{
	session = (struct gt_rendezvous){
		.dir = dir,
		.host = "a host/1",
		.command = "train",
		.prepare = on_prepare,
		.decide = on_decide,
		.state = on_state,
	};
	assert_int_equal(gt_rendezvous_start(&session, &loop, &err), 0);
}

static void end(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, session.name);
	gt_rendezvous_close(&session);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(access(path, F_OK), -1);
}

static void ask(const char *text)
{
	struct gt_fields all = { .len = strlen(text) };

	memcpy(all.text, text, all.len);
	assert_int_equal(gt_rendezvous_write(dir, GT_RENDEZVOUS_REQUEST, &all, &err), 0);
}

/* Its file is written when it has looked at the request, and only then. */
static void expect_answer(const char *phase, const char *answer)
{
	int before = looks;

	while (looks == before)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(read_file(session.name), 0);
	if (!gt_fields_is(&fields, "phase", phase) || !gt_fields_is(&fields, "answer", answer))
		fail_msg("not %s %s, but: %.*s", phase, answer, (int)fields.len, fields.text);
}

static void answer(const struct gt_trigger_result *result, const char *words)
{
	gt_rendezvous_answer(&session, result);
	assert_int_equal(read_file(session.name), 0);
	assert_true(gt_fields_is(&fields, "answer", words));
}

#define PREPARE "phase prepare\nfirst 300\nactive 2\nwarmup 1\ncycle 5\n"

static void prepare(const char *id)
{
	char text[256];

	snprintf(text, sizeof(text), "request %s\nattempt 1\n" PREPARE, id);
	ask(text);
	expect_answer("prepare", "preparing");
	answer(&(struct gt_trigger_result){ .rc = 0 }, "taken");
}

static void takes_part(void **state)
{
	uint64_t value = 0;

	(void)state;
	ask("request old\nattempt 1\n" PREPARE); /* before it was there */
	begin();
	assert_non_null(strstr(session.name, "a_host_1"));
	ask("request r\nattempt 0\nphase look\n");
	expect_answer("look", "here");
	assert_int_equal(prepared, 0);
	assert_true(gt_fields_number(&fields, "step", &value));
	assert_int_equal(value, 250);
	assert_true(gt_fields_is(&fields, "ranks", "4"));
	prepare("r");
	assert_int_equal(prepared, 1);
	assert_int_equal(request.step, 300);
	assert_int_equal(request.active, 2);
	assert_int_equal(request.warmup, 1);
	assert_int_equal(request.cycle, 5);
	assert_true(request.prepare);
	ask("request r\nattempt 1\nphase commit\n");
	expect_answer("commit", "committed");
	assert_int_equal(committed, 1);
	assert_int_equal(dropped, 0);
	end();
}

static void cannot(void **state)
{
	(void)state;
	begin();
	prepare_rc = -EBUSY;
	ask("request r\nattempt 1\n" PREPARE);
	expect_answer("prepare", "failed");
	assert_true(gt_fields_is(&fields, "why", "it is busy"));
	prepare_rc = 0;
	ask("request r\nattempt 2\n" PREPARE);
	expect_answer("prepare", "preparing");
	answer(&(struct gt_trigger_result){ .rc = -ETIME, .late = true }, "late");
	ask("request r\nattempt 3\n" PREPARE);
	expect_answer("prepare", "preparing");
	answer(&(struct gt_trigger_result){ .rc = 0 }, "taken");
	too_late = true;
	ask("request r\nattempt 3\nphase commit\n");
	expect_answer("commit", "failed");
	assert_true(gt_fields_is(&fields, "why", "the decision came too late"));
	assert_int_equal(dropped, 0);
	end();
}

/* Until the look that does something: what it does not do has no other end. */
static void run_until(const int *counter, int want)
{
	while (*counter < want)
		uv_run(&loop, UV_RUN_ONCE);
}

static void taken_back(void **state)
{
	char text[256];

	(void)state;
	begin();
	prepare("one");
	ask("request one\nattempt 1\nphase cancel\n");
	run_until(&dropped, 1);
	/* by another request, and by another attempt */
	prepare("two");
	prepare("three");
	assert_int_equal(dropped, 2);
	ask("request three\nattempt 2\nphase commit\n");
	run_until(&dropped, 3);
	/* it answered too late, and the others went on without it */
	prepare("four");
	snprintf(text, sizeof(text), "request four\nattempt 1\nphase commit\nwithout-%s 1\n",
		 session.name);
	ask(text);
	run_until(&dropped, 4);
	assert_int_equal(committed, 0);
	end();
}

static void requests_that_are_none(void **state)
{
	static const char *const broken[] = {
		"request a\nattempt 1\nphase prepare\n",
		"request b\nattempt 1\nphase prepare\nfirst 1\nactive 1\nwarmup 1\ncycle x\n",
		"request c\nattempt 1\nphase prepare\nfirst -1\nactive 1\nwarmup 1\ncycle 1\n",
		"request d\nattempt 1\nphase prepare\nfirst 1\nactive 1\nwarmup 1\ncycle "
		"1000000001\n",
		"request e\nattempt 1\nphase prepare\nfirst 1\nactive 99999999999999999999\nwarmup "
		"1\ncycle 1\n",
	};

	(void)state;
	begin();
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		ask(broken[i]);
		expect_answer("prepare", "failed");
		assert_true(gt_fields_is(&fields, "why", "the request is none"));
	}
	assert_int_equal(prepared, 0);
	/* these are not even followed; the next one shows that the session goes on */
	put(GT_RENDEZVOUS_REQUEST, "request f\nattempt 1\n" PREPARE, 25);
	uv_run(&loop, UV_RUN_ONCE);
	ask("phase prepare\n");
	uv_run(&loop, UV_RUN_ONCE);
	ask("request g\nattempt many\nphase look\n");
	uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(unlink(path_of(GT_RENDEZVOUS_REQUEST)), 0);
	assert_int_equal(mkfifo(path_of(GT_RENDEZVOUS_REQUEST), 0600), 0);
	uv_run(&loop, UV_RUN_ONCE);
	ask("request an-id-that-is-longer-than-any-that-gtrace-would-give-to-one-of-its-own\n"
	    "attempt 1\nphase look\n");
	expect_answer("look", "here");
	assert_int_equal(prepared, 0);
	end();
}

/* Its file is there again as soon as it can be. */
static void the_directory_goes_away(void **state)
{
	(void)state;
	begin();
	assert_int_equal(unlink(path_of(session.name)), 0);
	assert_int_equal(rmdir(dir), 0);
	uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(mkdir(dir, 0700), 0);
	ask("request r\nattempt 0\nphase look\n");
	expect_answer("look", "here");
	end();
	assert_int_equal(unlink(path_of(GT_RENDEZVOUS_REQUEST)), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(gt_rendezvous_start(&session, &loop, &err), -ENOENT);
	end();
	assert_int_equal(mkdir(dir, 0700), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(written_is_read),
		TEST(files_that_are_none),
		TEST(files_of_another_user),
		TEST(takes_part),
		TEST(cannot),
		TEST(taken_back),
		TEST(requests_that_are_none),
		TEST(the_directory_goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
