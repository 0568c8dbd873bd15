/*
 * What gtrace run tells of windows: in the order in which they open, whatever comes first of what
 * is known of a process.
 */
#include "base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../cmd/run_absent.c"
#include "../../cmd/run_explain.c"
#include "../../cmd/run_report.c"

/* ---- stand-ins for cmd/die.c, run_options.c, run_capture.c and run_environment.c ---- */

static char said[4096];

static void put_line(const char *fmt, va_list args)
{
	size_t len = strlen(said);

	vsnprintf(said + len, sizeof(said) - len, fmt, args);
	len = strlen(said);
	snprintf(said + len, sizeof(said) - len, "\n");
}

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_line(fmt, args);
	va_end(args);
}

void warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_line(fmt, args);
	va_end(args);
}

void say_text(const char *text, size_t len)
{
	(void)text;
	(void)len;
}

void say_progress(const char *fmt, ...)
{
	(void)fmt;
}

void end_progress(void)
{
}

const char *const run_step_sources[] = { "auto" };

char run_environment_python_option(char *const *command)
{
	(void)command;
	return 0;
}

void run_capture_describe(const struct run_options *run, char *buf, size_t len)
{
	(void)run;
	(void)len;
	*buf = '\0';
}

/* ---- what happens ---- */

static struct run_options options;
static struct run_report report;
static struct gt_client_info clients[2];

static int set_up(void **state)
{
	(void)state;
	said[0] = '\0';
	options = (struct run_options){ .schedule = GT_SCHEDULE_DEFAULT };
	options.schedule.active = 1;
	options.schedule.repeat = 0;
	report = (struct run_report){ .options = &options };
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		clients[i] = (struct gt_client_info){
			.id = i + 1,
			.hello = { .pid = 11 + (uint32_t)i, .comm = "train", .door = GT_DOOR_CUDA },
			.has_hello = true,
			.step_source = GT_STEP_API,
		};
	return 0;
}

static void open_window(size_t client, uint64_t number)
{
	const struct gt_msg_phase phase = { .what = GT_WHAT_OPEN,
					    .cycle = number - 1,
					    .value = 10 * number };

	run_report_phase(&report, &clients[client], &phase);
}

static void find_gpu(size_t client)
{
	clients[client].device = (struct gt_msg_device){ .name = "GPU" };
	clients[client].device_count = 1;
}

static void expect(const char *lines)
{
	assert_string_equal(said, lines);
	said[0] = '\0';
}

#define TRACING_11 "tracing train (pid 11) on GPU, steps by gtrace_step()\n"
#define OPEN_1     "window 1 open at step 10, for 1 step"
#define OPEN_2     "window 2 open at step 20, for 1 step"

/* ---- tests ---- */

static void test_gpu_known_first(void **state)
{
	(void)state;
	find_gpu(0);
	open_window(0, 1);
	expect(TRACING_11 OPEN_1 "\n");
	open_window(0, 2);
	run_report_drained(&report, &clients[0]);
	expect("");
}

static void test_on_the_cpu(void **state)
{
	(void)state;
	clients[0].hello.door = GT_DOOR_PYTHON;
	open_window(0, 1);
	expect("tracing train (pid 11), steps by gtrace_step()\n" OPEN_1 "\n");
}

static void test_on_the_cpu_without_a_window(void **state)
{
	(void)state;
	clients[0].hello.door = GT_DOOR_PYTHON;
	clients[0].step_source = GT_STEP_NONE;
	run_report_drained(&report, &clients[0]);
	expect("");
	clients[0].step_source = GT_STEP_API;
	run_report_drained(&report, &clients[0]);
	expect("tracing train (pid 11), steps by gtrace_step()\n");
}

static void test_waits_for_gpu(void **state)
{
	(void)state;
	open_window(0, 1);
	run_report_drained(&report, &clients[0]);
	expect("");
	find_gpu(0);
	run_report_drained(&report, &clients[0]);
	expect(TRACING_11 OPEN_1 "\n");
}

/* All of it is read at once: the GPU is known when the second window opens, and no drain was. */
static void test_next_window_comes_first(void **state)
{
	(void)state;
	open_window(0, 1);
	find_gpu(0);
	open_window(0, 2);
	expect(TRACING_11 OPEN_1 "\n");
	run_report_drained(&report, &clients[0]);
	expect("");
}

static void test_each_window(void **state)
{
	(void)state;
	options.verbose = 1;
	open_window(0, 1);
	find_gpu(0);
	open_window(0, 2);
	expect(TRACING_11 OPEN_1 " of train (pid 11)\n" OPEN_2 " of train (pid 11)\n");
	run_report_drained(&report, &clients[0]);
	expect("");
}

/* What waits is told as that of the process that it is of. */
static void test_of_its_process(void **state)
{
	(void)state;
	options.verbose = 1;
	open_window(0, 1);
	find_gpu(1);
	open_window(1, 1);
	expect("tracing train (pid 12) on GPU, steps by gtrace_step()\n" OPEN_1
	       " of train (pid 12)\n");
	find_gpu(0);
	run_report_drained(&report, &clients[1]);
	expect("");
	run_report_drained(&report, &clients[0]);
	expect(OPEN_1 " of train (pid 11)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_gpu_known_first, set_up),
		cmocka_unit_test_setup(test_on_the_cpu, set_up),
		cmocka_unit_test_setup(test_on_the_cpu_without_a_window, set_up),
		cmocka_unit_test_setup(test_waits_for_gpu, set_up),
		cmocka_unit_test_setup(test_next_window_comes_first, set_up),
		cmocka_unit_test_setup(test_each_window, set_up),
		cmocka_unit_test_setup(test_of_its_process, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
