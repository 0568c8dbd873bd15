/*
 * test_source_line.c - frames of Python, and which one an operator belongs to.
 */
#include "base.h"
#include "source_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(const char *frame, const char *file, uint32_t number, const char *function)
{
	struct gt_source_line line;

	assert_int_equal(gt_source_line_of(gt_str_of(frame), &line), GT_SOURCE_PROGRAM);
	assert_true(gt_str_equal(line.file, gt_str_of(file)));
	assert_int_equal(line.number, number);
	assert_true(gt_str_equal(line.function, gt_str_of(function)));
}

static void check_kind(const char *frame, enum gt_source_kind kind)
{
	struct gt_source_line line;

	if (gt_source_line_of(gt_str_of(frame), &line) != kind)
		fail_msg("'%s' is not of kind %d", frame, kind);
}

static void test_lines(void **state)
{
	(void)state;
	check("train.py(12): forward", "train.py", 12, "forward");
	check("/a (1): b/c.py(012): <module>", "/a (1): b/c.py", 12, "<module>");
	check("a.py(1): ", "a.py", 1, "");
	check("<string>(1): <module>", "<string>", 1, "<module>");
	check("a(x): b(999999999): f", "a(x): b", 999999999, "f");
}

static void test_no_lines(void **state)
{
	static const char *const frames[] = {
		"",
		"): ",
		"(1): f",
		"1): f",
		"a.py(): f",
		"a.py(1):f",
		"a.py(-1): f",
		"nn.Module: Linear_0",
		"<built-in method linear of type object at 0x7f12>",
		"a.py(1234567890): f",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		check_kind(frames[i], GT_SOURCE_NONE);
}

static void test_libraries(void **state)
{
	static const char *const libraries[] = {
		"torch/nn/modules/linear.py(125): forward",
		"/usr/lib/python3.11/threading.py(975): run",
		"/opt/venv/lib/python3.12/site-packages/torch/_tensor.py(1): backward",
		"/usr/lib/python3/dist-packages/numpy/__init__.py(1): f",
		"threading.py(975): run",
		"<frozen runpy>(88): _run_code",
		"<eval_with_key>.3(5): forward",
		"/tmp/torchinductor_me/ab/cab.py(34): call",
		"gtrace_torch.py(52): step_and_mark",
	};
	static const char *const programs[] = {
		"/srv/me/torch/train.py(1): f",     "mytorch/nn.py(1): f",
		"<ipython-input-3-1>(1): <module>", "/srv/lib/model.py(3): f",
		"/srv/me/not_gtrace.py(3): f",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		check_kind(libraries[i], GT_SOURCE_LIBRARY);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		check_kind(programs[i], GT_SOURCE_PROGRAM);
}

static void test_frames(void **state)
{
	(void)state;
	assert_true(gt_str_equal(
		gt_source_frame_of(gt_str_of("<built-in f>;torch/a.py(1): f;b.py(2): g;"
					     "c.py(3): h")),
		GT_STR("b.py(2): g")));
	assert_true(gt_str_equal(
		gt_source_frame_of(gt_str_of("<built-in f>;torch/a.py(1): f;torch/b.py(2): g")),
		GT_STR("torch/a.py(1): f")));
	assert_int_equal(gt_source_frame_of(gt_str_of("<built-in f>;;x")).len, 0);
	assert_int_equal(gt_source_frame_of(gt_str_of("")).len, 0);
	assert_int_equal(gt_source_frame_of((struct gt_str){ NULL, 0 }).len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_no_lines),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
