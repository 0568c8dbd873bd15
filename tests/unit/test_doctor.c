/* What the doctor makes of a machine that is a directory here. */
#include "base.h"
#include "doctor.h"
#include "remove_tree.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char root[64];
static struct gt_doctor doctor;

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/gtrace-test-XXXXXX");
	doctor = (struct gt_doctor){ .root = root };
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	gt_doctor_release(&doctor);
	return remove_tree(root);
}

/* A file below root, and the directories on the way to it. */
static void put(const char *path, const char *text)
{
	char full[256], *slash;
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0755);
	}
	file = fopen(full, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* The level of the first finding of that name that has the words; -1: there is none. */
static int level_of(const char *name, const char *words)
{
	for (size_t i = 0; i < doctor.count; i++) {
		const struct gt_finding *finding = &doctor.findings[i];

		if (!strcmp(finding->name, name) &&
		    memmem(finding->text.data, finding->text.len, words, strlen(words)))
			return (int)finding->level;
	}
	return -1;
}

static void examine(void)
{
	gt_doctor_release(&doctor);
	gt_doctor_container(&doctor);
}

static void memory_of_version_2(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/memory.current", "1048576\n");
	examine();
	assert_int_equal(level_of("container.memory", "no limit"), GT_DOCTOR_OK);
	/* that of a group above counts */
	put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
	put("/sys/fs/cgroup/a/memory.current", "104857600\n");
	examine();
	assert_int_equal(level_of("container.memory", "1024 MiB, of which 924 MiB"), GT_DOCTOR_OK);
	put("/sys/fs/cgroup/a/memory.current", "1000000000\n");
	examine();
	assert_int_equal(level_of("container.memory", "1024 MiB, of which 70 MiB"),
			 GT_DOCTOR_WARNING);
	/* without what is there to make reading faster */
	put("/sys/fs/cgroup/a/memory.stat", "active_file 7\ninactive_file 536870912\nslab 1\n");
	examine();
	assert_int_equal(level_of("container.memory", "1024 MiB, of which 582 MiB"), GT_DOCTOR_OK);
	/* and the tightest of them */
	put("/sys/fs/cgroup/a/b/memory.max", "2097152\n");
	examine();
	assert_int_equal(level_of("container.memory", "2 MiB, of which 1 MiB"), GT_DOCTOR_WARNING);
	/* more in use than is allowed */
	put("/sys/fs/cgroup/a/b/memory.current", "99999999999\n");
	examine();
	assert_int_equal(level_of("container.memory", "of which 0 MiB"), GT_DOCTOR_WARNING);
}

/* A container sees its own group as the topmost one. */
static void memory_of_a_container(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "0::/\n");
	put("/sys/fs/cgroup/memory.max", "209715200\n");
	put("/sys/fs/cgroup/memory.current", "104857600\n");
	examine();
	assert_int_equal(level_of("container.memory", "200 MiB, of which 100 MiB"),
			 GT_DOCTOR_WARNING);
}

static void memory_of_version_1(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "12:cpu:/x\n4:memory:/slurm/job\n1:name=systemd:/y\n0::/z\n");
	put("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "1073741824\n");
	put("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "536870912\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "536870912\n");
	examine();
	assert_int_equal(level_of("container.memory", "1024 MiB, of which 512 MiB"), GT_DOCTOR_OK);
	put("/sys/fs/cgroup/memory/slurm/job/memory.stat",
	    "inactive_file 1\ntotal_inactive_file 268435456\n");
	examine();
	assert_int_equal(level_of("container.memory", "1024 MiB, of which 768 MiB"), GT_DOCTOR_OK);
}

static void memory_that_makes_no_sense(void **state)
{
	char deep[3000];

	(void)state;
	examine();
	assert_int_equal(level_of("container.memory", "no limit"), GT_DOCTOR_OK);
	put("/proc/self/cgroup", "nonsense\n\n0::\n0::relative\n");
	examine();
	assert_int_equal(level_of("container.memory", "no limit"), GT_DOCTOR_OK);
	put("/proc/self/cgroup", "0::/a\n");
	put("/sys/fs/cgroup/a/memory.max", "many\n");
	put("/sys/fs/cgroup/a/memory.current", "");
	examine();
	assert_int_equal(level_of("container.memory", "no limit"), GT_DOCTOR_OK);
	memset(deep, '/', sizeof(deep) - 1);
	memcpy(deep, "0::", 3);
	deep[sizeof(deep) - 1] = '\0';
	put("/proc/self/cgroup", deep);
	examine();
	assert_int_equal(level_of("container.memory", "no limit"), GT_DOCTOR_OK);
}

static void kinds(void **state)
{
	(void)state;
	unsetenv("APPTAINER_CONTAINER");
	unsetenv("KUBERNETES_SERVICE_HOST");
	examine();
	assert_int_equal(level_of("container.kind", ""), -1);
	put("/.dockerenv", "");
	examine();
	assert_int_equal(level_of("container.kind", "Docker"), GT_DOCTOR_OK);
	put("/run/.containerenv", "");
	examine();
	assert_int_equal(level_of("container.kind", "Podman"), GT_DOCTOR_OK);
	setenv("APPTAINER_CONTAINER", "/image.sif", 1);
	examine();
	assert_int_equal(level_of("container.kind", "Apptainer"), GT_DOCTOR_OK);
	unsetenv("APPTAINER_CONTAINER");
}

/* A container that has the device, but not the driver's library. */
static void a_gpu_without_its_library(void **state)
{
	struct gt_signals signals;
	struct gt_err err;
	char path[128];

	(void)state;
	if (dlopen("libcuda.so.1", RTLD_LAZY))
		skip();
	put("/dev/nvidiactl", "");
	put("/proc/driver/nvidia/params",
	    "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n");
	snprintf(path, sizeof(path), "%s/dev/nvidiactl", root);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(gt_signals_init(&signals, &err), 0);
	doctor.signals = &signals;
	doctor.timeout_ms = 600000;
	gt_doctor_gpu(&doctor);
	gt_signals_release(&signals);
	assert_int_equal(doctor.gpu, GT_DOCTOR_GPU_BROKEN);
	assert_int_equal(level_of("gpu.driver", "no driver library"), GT_DOCTOR_PROBLEM);
	assert_int_equal(level_of("gpu.counters", "for root alone"), GT_DOCTOR_OK);
	/* to root nothing is closed */
	assert_int_equal(level_of("gpu.permission", path), geteuid() ? (int)GT_DOCTOR_PROBLEM : -1);
}

/* What is not right makes the difference to the verdict, and a finding's bytes do no harm. */
static void printed(void **state)
{
	struct gt_buf text = { 0 };

	(void)state;
	doctor.gpu = GT_DOCTOR_GPU_WORKS;
	gt_doctor_add(&doctor, "a.b", GT_DOCTOR_OK, "fine");
	assert_true(gt_doctor_is_well(&doctor));
	assert_int_equal(gt_doctor_print(&doctor, false, &text), 0);
	gt_buf_byte(&text, '\0');
	assert_string_equal(text.data, "tracing will work\nok a.b: fine\n");
	gt_buf_release(&text);

	gt_doctor_add(&doctor, "c.d", GT_DOCTOR_WARNING, "odd \033[31m\"%s", "name");
	gt_doctor_fix(&doctor, "do %d", 1);
	gt_doctor_add(&doctor, "e", GT_DOCTOR_PROBLEM, "bad");
	gt_doctor_fix(&doctor, "undo");
	assert_false(gt_doctor_is_well(&doctor));
	assert_int_equal(gt_doctor_print(&doctor, false, &text), 0);
	gt_buf_byte(&text, '\0');
	assert_string_equal(text.data, "tracing will not work (1 problem, 1 warning)\n"
				       "ok a.b: fine\n"
				       "warning c.d: odd \\x1b[31m\"name\n  fix: do 1\n"
				       "problem e: bad\n  fix: undo\n");
	gt_buf_release(&text);
	assert_int_equal(gt_doctor_print_json(&doctor, &text), 0);
	gt_buf_byte(&text, '\0');
	assert_string_equal(
		text.data,
		"{\"gtrace\":\"" GT_VERSION "\",\"works\":false,\"gpu\":\"works\",\"findings\":[\n"
		"{\"name\":\"a.b\",\"level\":\"ok\",\"text\":\"fine\",\"fix\":null},\n"
		"{\"name\":\"c.d\",\"level\":\"warning\",\"text\":\"odd \\u001b[31m\\\"name\","
		"\"fix\":\"do 1\"},\n"
		"{\"name\":\"e\",\"level\":\"problem\",\"text\":\"bad\",\"fix\":\"undo\"}]}\n");
	gt_buf_release(&text);
}

static void values_of_a_child(void **state)
{
	struct gt_child child = { .status = 0 };
	char value[8];

	(void)state;
	assert_false(gt_doctor_value(&child, "a", value, sizeof(value)));
	gt_buf_text(&child.output, "ab 1\na\na 2 3\nlong 123456789\nb 4");
	assert_true(gt_doctor_value(&child, "a", value, sizeof(value)));
	assert_string_equal(value, "2 3");
	assert_true(gt_doctor_value(&child, "long", value, sizeof(value)));
	assert_string_equal(value, "1234567");
	assert_true(gt_doctor_value(&child, "b", value, sizeof(value)));
	assert_string_equal(value, "4");
	assert_false(gt_doctor_value(&child, "c", value, sizeof(value)));
	gt_child_release(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_of_version_2, make_root, remove_root),
		cmocka_unit_test_setup_teardown(memory_of_a_container, make_root, remove_root),
		cmocka_unit_test_setup_teardown(memory_of_version_1, make_root, remove_root),
		cmocka_unit_test_setup_teardown(memory_that_makes_no_sense, make_root, remove_root),
		cmocka_unit_test_setup_teardown(kinds, make_root, remove_root),
		cmocka_unit_test_setup_teardown(a_gpu_without_its_library, make_root, remove_root),
		cmocka_unit_test_setup_teardown(printed, make_root, remove_root),
		cmocka_unit_test(values_of_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
