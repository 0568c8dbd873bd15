/*
 * source_line.c - see source_line.h.
 */
#include "base.h"
#include "source_line.h"

#define DIGITS_MAX 9

/* Where installed packages and Python's own modules are. PyTorch cuts what it finds of sys.path off
 * the names in python_function events, but not off those in "Call stack". */
static bool is_in_library(struct gt_str file)
{
	static const struct gt_str places[] = {
		GT_STR("/site-packages/"), GT_STR("/dist-packages/"), GT_STR("/lib/python2"),
		GT_STR("/lib/python3"),    GT_STR("/pytorch/torch/"), GT_STR("/torchinductor_"),
	};
	/* gtrace's own call the program's functions, or PyTorch's, in their place. */
	static const struct gt_str beginnings[] = {
		GT_STR("torch/"),          GT_STR("concurrent/"),     GT_STR("contextlib.py"),
		GT_STR("functools.py"),    GT_STR("importlib/"),      GT_STR("multiprocessing/"),
		GT_STR("runpy.py"),        GT_STR("threading.py"),    GT_STR("unittest/"),
		GT_STR("asyncio/"),        GT_STR("cProfile.py"),     GT_STR("timeit.py"),
		GT_STR("gtrace.py"),       GT_STR("gtrace_calls.py"), GT_STR("gtrace_steps.py"),
		GT_STR("gtrace_torch.py"),
	};
	/* Code that is in no file; all other such names are of Python or made by PyTorch. */
	static const struct gt_str typed[] = { GT_STR("<string>"), GT_STR("<stdin>"),
					       GT_STR("<ipython-input-") };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (gt_str_has(file, places[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (gt_str_starts(file, beginnings[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(typed); i++) {
		if (gt_str_starts(file, typed[i]))
			return false;
	}
	return file.len && file.ptr[0] == '<';
}

/* The number in "(12): " at 'at', which is that of its ')'; *ret_digits: where it begins. 0: none,
 * or longer than DIGITS_MAX. */
static uint32_t number_before(struct gt_str frame, const char *at, const char **ret_digits)
{
	const char *digits = at;
	uint32_t number = 0;

	while (digits > frame.ptr && gt_is_digit(digits[-1]))
		digits--;
	if (at - digits > DIGITS_MAX || digits < frame.ptr + 2 || digits[-1] != '(')
		return 0;
	*ret_digits = digits;
	while (digits < at)
		number = number * 10 + (uint32_t)(*digits++ - '0');
	return number;
}

/* From the end, since a function has no such mark in its name, but a file may. */
enum gt_source_kind gt_source_line_of(struct gt_str frame, struct gt_source_line *ret)
{
	static const struct gt_str mark = GT_STR("): ");

	for (size_t rest = mark.len; rest <= frame.len; rest++) {
		const char *at = frame.ptr + frame.len - rest, *digits;
		uint32_t number;

		if (*at != ')' || memcmp(at, mark.ptr, mark.len) != 0)
			continue;
		number = number_before(frame, at, &digits);
		if (!number)
			continue;
		ret->file = (struct gt_str){ frame.ptr, (size_t)(digits - 1 - frame.ptr) };
		ret->number = number;
		ret->function = (struct gt_str){ at + mark.len, rest - mark.len };
		return is_in_library(ret->file) ? GT_SOURCE_LIBRARY : GT_SOURCE_PROGRAM;
	}
	return GT_SOURCE_NONE;
}

struct gt_str gt_source_frame_of(struct gt_str stack)
{
	const char *at = stack.ptr, *end = stack.ptr + stack.len;
	struct gt_str best = { NULL, 0 };

	while (at < end) {
		const char *semicolon = memchr(at, ';', (size_t)(end - at));
		struct gt_str frame = { at, (size_t)((semicolon ? semicolon : end) - at) };
		struct gt_source_line line;
		enum gt_source_kind kind = gt_source_line_of(frame, &line);

		if (kind == GT_SOURCE_PROGRAM)
			return frame;
		if (kind == GT_SOURCE_LIBRARY && !best.len)
			best = frame;
		at += frame.len + 1;
	}
	return best;
}
