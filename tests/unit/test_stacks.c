/* The text of a stack is bounded, whatever names a peer sends. */
#include "base.h"
#include "stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { NAME = 1, FRAMES = 100, LEN_BYTES = 8000 };

#define NAME_BYTES 4096 /* as stacks.h has it */
#define TEXT_BYTES (64 << 10)

static struct gt_stacks stacks;
static struct gt_names names;
static struct gt_buf text;

/* Each of the frames has a name of LEN_BYTES. */
static int setup(void **state)
{
	uint64_t bytes[(sizeof(struct gt_ev_string) + LEN_BYTES) / 8] = { 0 };
	struct gt_ev_string *name = (void *)bytes;

	(void)state;
	name->id = NAME;
	name->total_bytes = LEN_BYTES;
	name->len_bytes = LEN_BYTES;
	memset(name->bytes, 'n', LEN_BYTES);
	gt_names_add(&names, name);
	for (uint32_t id = 1; id <= FRAMES; id++)
		gt_stacks_add(&stacks, &(struct gt_ev_frame){ .id = id,
							      .outer_id = id - 1,
							      .function_id = NAME,
							      .line = 7,
							      .class_id = NAME });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_stacks_release(&stacks);
	gt_names_release(&names);
	gt_buf_release(&text);
	return 0;
}

static void calls(void **state)
{
	static const char end[] = "nn;...(0): outer frames;";

	(void)state;
	gt_buf_text(&text, "before");
	gt_stacks_put_calls(&stacks, &names, FRAMES, &text);
	assert_in_range(text.len, TEXT_BYTES, TEXT_BYTES + 2 * NAME_BYTES);
	assert_memory_equal(text.data + text.len - strlen(end), end, strlen(end));
}

static void modules(void **state)
{
	(void)state;
	gt_stacks_put_modules(&stacks, &names, FRAMES, &text);
	assert_in_range(text.len, TEXT_BYTES, TEXT_BYTES + 2 * NAME_BYTES);
}

/* Of a name that is too long its beginning. */
static void long_name(void **state)
{
	static const char end[] = "(7): ";
	const struct gt_frame frame = { .function_id = NAME, .file_id = NAME };

	(void)state;
	gt_frame_put(&frame, &names, 7, &text);
	assert_int_equal(text.len, NAME_BYTES + strlen(end) + NAME_BYTES);
	assert_memory_equal(text.data + NAME_BYTES, end, strlen(end));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls, setup, teardown),
		cmocka_unit_test_setup_teardown(modules, setup, teardown),
		cmocka_unit_test_setup_teardown(long_name, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
