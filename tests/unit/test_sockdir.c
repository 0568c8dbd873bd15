#include "base.h"
#include "sockdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char base[64];

static int make_base(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/gtrace-test-XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

/* That nothing is left in it is part of each test. */
static int remove_base(void **state)
{
	(void)state;
	return rmdir(base);
}

static void private_and_connectable(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *bases[] = { base };
	struct gt_sockdir sockdir;
	struct stat st;
	struct gt_err err;
	int fd;

	(void)state;
	assert_int_equal(gt_sockdir_open(&sockdir, bases, 1, &err), 0);
	assert_int_equal(stat(sockdir.dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(st.st_uid, geteuid());
	memcpy(addr.sun_path, sockdir.path, sizeof(addr.sun_path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	gt_sockdir_close(&sockdir);
	assert_int_equal(stat(sockdir.dir, &st), -1);
}

static void first_that_works(void **state)
{
	char none[128], deep[256];
	const char *bases[] = { NULL, "", "relative", none, deep, base };
	struct gt_sockdir sockdir;
	struct gt_err err;

	(void)state;
	snprintf(none, sizeof(none), "%s/none", base);
	memset(deep, 'x', sizeof(deep) - 1);
	deep[0] = '/';
	deep[sizeof(deep) - 1] = 0;
	assert_int_equal(gt_sockdir_open(&sockdir, bases, ARRAY_SIZE(bases), &err), 0);
	assert_memory_equal(sockdir.dir, base, strlen(base));
	gt_sockdir_close(&sockdir);

	/* the last one tried is named */
	assert_int_equal(gt_sockdir_open(&sockdir, bases, 4, &err), -ENOENT);
	assert_non_null(strstr(err.msg, none));
	assert_int_equal(gt_sockdir_open(&sockdir, bases, 5, &err), -ENAMETOOLONG);
	assert_int_equal(gt_sockdir_open(&sockdir, bases, 3, &err), -ENOENT);
}

/* The longest base that fits, and one byte more. */
static void length(void **state)
{
	const size_t longest = sizeof(((struct gt_sockdir *)0)->dir) - sizeof("/gtrace-XXXXXX");
	char path[200];
	const char *bases[] = { path };
	struct gt_sockdir sockdir;
	struct gt_err err;

	(void)state;
	memset(path, '/', sizeof(path)); /* slashes do not make it another directory */
	memcpy(path + longest - strlen(base), base, strlen(base) + 1);
	assert_int_equal(gt_sockdir_open(&sockdir, bases, 1, &err), 0);
	assert_int_equal(strlen(sockdir.path), sizeof(sockdir.path) - 1);
	gt_sockdir_close(&sockdir);
	memset(path, '/', sizeof(path));
	memcpy(path + longest + 1 - strlen(base), base, strlen(base) + 1);
	assert_int_equal(gt_sockdir_open(&sockdir, bases, 1, &err), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(private_and_connectable, make_base, remove_base),
		cmocka_unit_test_setup_teardown(first_that_works, make_base, remove_base),
		cmocka_unit_test_setup_teardown(length, make_base, remove_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
