/* What a recorder does with its files: when they cannot be written, when they are flushed. */
#include "base.h"
#include "recorder_rig.h"

static void no_path(void **state)
{
	(void)state;
	start();
	path_rc = -EACCES;
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(25);
	assert_int_equal(failures(), 1);
	assert_int_equal(report.closed[0].err.code, -EACCES);
	assert_string_equal(report.closed[0].err.msg, "no path");
	launch_and_kernel(2, 2, 26);
	ab_flush(&ab);
	drain(28);
	assert_int_equal(failures(), 0); /* said once; it goes on without */
	assert_int_equal(path_calls, 1);
	steps_to(4);
	close_cycle(50);
	assert_true(report.drained || report.open_cycle);
	drain(200);
	assert_int_equal(report.open_cycle, 0);
	assert_int_equal(report.closed_count, 0);
}

/* Another gtrace of the job made the file in between, and there is another name. */
static void taken_path(void **state)
{
	(void)state;
	start();
	fake_taken = "cycle1";
	path_changes = true;
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(25);
	assert_int_equal(failures(), 0);
	assert_int_equal(path_calls, 2);
	assert_string_equal(only_trace()->path, "cycle1-2");
}

static void no_other_path(void **state)
{
	(void)state;
	start();
	fake_taken = "cycle1";
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(25);
	assert_int_equal(failures(), 1);
	assert_int_equal(report.closed[0].err.code, -EEXIST);
}

static void disk_full(void **state)
{
	(void)state;
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	fake_write_rc = -ENOSPC;
	launch_and_kernel(2, 2, 26);
	ab_flush(&ab);
	drain(28);
	assert_int_equal(failures(), 1);
	assert_int_equal(report.closed[0].err.code, -ENOSPC);
	assert_non_null(strstr(report.closed[0].err.msg, "cycle1"));
	steps_to(4);
	close_cycle(50);
	drain(200);
	assert_true(only_trace()->closed);
	assert_int_equal(report.closed_count, 0);
}

/* In the same drain the first window cannot be written and the second one has no path. */
static void two_windows_fail(void **state)
{
	(void)state;
	config.schedule.repeat = 2;
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	fake_write_rc = -ENOSPC;
	path_rc = -EACCES;
	launch_and_kernel(2, 2, 26);
	steps_to(5);
	launch_and_kernel(5, 3, 51);
	ab_flush(&ab);
	drain(52);
	assert_int_equal(failures(), 2);
	assert_int_equal(report.closed[0].err.code, -ENOSPC);
	assert_int_equal(report.closed[1].err.code, -EACCES);
}

static void flushes(void **state)
{
	(void)state;
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	assert_int_equal(only_trace()->flushes, 0);
	gt_recorder_look(rec);
	gt_recorder_drain(rec, AB_MS(23), true, &report);
	assert_int_equal(only_trace()->flushes, 1);
	assert_false(only_trace()->health.complete);
	assert_null(only_trace()->health.reason);
	fake_traces[0].pending_bytes = 2 << 20;
	drain(24);
	assert_int_equal(only_trace()->flushes, 2);
}

static void devices(void **state)
{
	struct gt_msg_device device = { .id = 1, .num_sms = 132 };

	(void)state;
	start();
	memset(device.name, 'x', sizeof(device.name)); /* without an end */
	gt_recorder_device(rec, &device);
	device.id = 64;
	gt_recorder_device(rec, &device); /* no pid of a GPU in a trace */
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	assert_int_equal(only_trace()->meta.device_count, 1);
	device.id = 0;
	gt_recorder_device(rec, &device);
	device.id = 1;
	gt_recorder_device(rec, &device);
	assert_int_equal(only_trace()->late_devices, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_path),          TEST(taken_path), TEST(no_other_path), TEST(disk_full),
		TEST(two_windows_fail), TEST(flushes),    TEST(devices),
	};

	return cmocka_run_group_tests_name("recorder_files", tests, NULL, NULL);
}
