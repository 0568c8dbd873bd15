#include "base.h"
#include "given_env.h"
#include "other_tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define OURS "/opt/gtrace/libgtrace-inject.so"

/* name: NULL: a library that nobody knows; how: NULL: no tool is found */
static struct gt_other_tool find(const char *command, const char *name, const char *how)
{
	char *argv[] = { (char *)command, NULL };
	struct gt_other_tool tool;
	bool found = gt_other_tool_find(&tool, argv, given_env, OURS);

	assert_int_equal(found, how != NULL);
	if (how) {
		assert_string_equal(tool.how, how);
		if (name)
			assert_string_equal(tool.name, name);
		else
			assert_null(tool.name);
	}
	return tool;
}

static void nobody(void **state)
{
	(void)state;
	GIVE_ENV(NULL);
	find("python", NULL, NULL);
	GIVE_ENV("CUDA_INJECTION64_PATH", "");
	find("python", NULL, NULL);
	GIVE_ENV("CUDA_INJECTION64_PATH", OURS);
	find("python", NULL, NULL);
	GIVE_ENV("CUDA_INJECTION64_PATH", "/elsewhere/libgtrace-inject.so");
	find("python", NULL, NULL);
	GIVE_ENV("NVTX_INJECTION64_PATH", "/usr/lib/libcupti.so");
	find("python", NULL, NULL);
	GIVE_ENV("LD_PRELOAD", "libjemalloc.so");
	find("python", NULL, NULL);
}

static void variables(void **state)
{
	static const struct {
		const char *variable;
		const char *value;
		const char *name;
	} cases[] = {
		{ "NSYS_PROFILING_SESSION_ID", "1", "Nsight Systems" },
		{ "QUADD_INJECTION_PROXY", "", "Nsight Systems" },
		{ "CUDA_INJECTION64_PATH", "/x/libToolsInjection64.so", "Nsight Systems" },
		{ "LD_PRELOAD", "a.so:/x/libToolsInjectionProxy64.so", "Nsight Systems" },
		{ "NVTX_INJECTION64_PATH", "/x/libToolsInjection64.so", "Nsight Systems" },
		{ "NV_NSIGHT_INJECTION_PORT_BASE", "49152", "Nsight Compute" },
		{ "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "2", "Nsight Compute" },
		{ "LD_PRELOAD", "/x/libTreeLauncherTargetInjection.so", "Nsight Compute" },
		{ "NV_SANITIZER_INJECTION_PORT_BASE", "1", "compute-sanitizer" },
		{ "CUDA_INJECTION64_PATH", "libsanitizer-collection.so", "compute-sanitizer" },
		{ "NVPROF_ID", "1", "nvprof" },
	};
	char how[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gt_other_tool tool;

		GIVE_ENV(cases[i].variable, cases[i].value);
		snprintf(how, sizeof(how), "%s has set %s", cases[i].name, cases[i].variable);
		tool = find("python", cases[i].name, how);
		assert_true(tool.variable);
		assert_int_equal(tool.nsys, !strcmp(cases[i].name, "Nsight Systems"));
	}
}

static void unknown_library(void **state)
{
	(void)state;
	GIVE_ENV("CUDA_INJECTION64_PATH", "/opt/other/libother.so");
	assert_false(
		find("python", NULL, "CUDA_INJECTION64_PATH is already '/opt/other/libother.so'")
			.nsys);
}

static void commands(void **state)
{
	static const struct {
		const char *command;
		const char *name;
	} tools[] = {
		{ "/opt/nsight/nsys", "Nsight Systems" },
		{ "nsys-launcher", "Nsight Systems" },
		{ "ncu", "Nsight Compute" },
		{ "nv-nsight-cu-cli", "Nsight Compute" },
		{ "nv-nsight-cu-cl", "Nsight Compute" }, /* as the kernel has it */
		{ "compute-sanitizer", "compute-sanitizer" },
		{ "compute-sanitiz", "compute-sanitizer" },
		{ "cuda-gdb", "cuda-gdb" },
		{ "cuda-gdb-minimal", "cuda-gdb" },
		{ "cuda-gdb-python", "cuda-gdb" },
	};
	static const char *const others[] = { "nsystem", "ncurses", "cuda-gdbserver.py", "gdb",
					      "compute-sanitized" };
	char how[128];

	(void)state;
	GIVE_ENV(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		const char *slash = strrchr(tools[i].command, '/');

		snprintf(how, sizeof(how), "%s takes the place of gtrace in the program",
			 slash ? slash + 1 : tools[i].command);
		assert_false(find(tools[i].command, tools[i].name, how).variable);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		find(others[i], NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody),
		cmocka_unit_test(variables),
		cmocka_unit_test(unknown_library),
		cmocka_unit_test(commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
