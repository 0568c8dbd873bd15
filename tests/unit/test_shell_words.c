#include "base.h"
#include "shell_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void assert_put(const char *word, const char *want)
{
	struct gt_buf out = { 0 };

	gt_shell_put(&out, word);
	gt_buf_byte(&out, 0);
	assert_false(out.failed);
	assert_string_equal(out.data, want);
	gt_buf_release(&out);
}

static void put(void **state)
{
	(void)state;
	assert_put("python3", "python3");
	assert_put("--trace=cuda,nvtx", "--trace=cuda,nvtx");
	assert_put("a/b_%p.x", "a/b_%p.x");
	assert_put("", "''");
	assert_put("two words", "'two words'");
	assert_put("it's", "'it'\\''s'");
	assert_put("$HOME", "'$HOME'");
	assert_put("~", "'~'");
}

/* want: the words with bars between them; NULL: refused with err */
static void assert_split(const char *text, const char *want, int err)
{
	char copy[128], joined[128] = "", *words[4];
	size_t used = 0;
	int count;

	snprintf(copy, sizeof(copy), "%s", text);
	count = gt_shell_split(copy, words, ARRAY_SIZE(words));
	if (!want) {
		assert_int_equal(count, err);
		return;
	}
	for (int i = 0; i < count; i++)
		used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s", i ? "|" : "",
					 words[i]);
	assert_true(count >= 0);
	assert_string_equal(joined, want);
}

static void split(void **state)
{
	(void)state;
	assert_split("", "", 0);
	assert_split(" \t\n", "", 0);
	assert_split("-f true", "-f|true", 0);
	assert_split("  --a=1   b ", "--a=1|b", 0);
	assert_split("--env='A=1 B' c", "--env=A=1 B|c", 0);
	assert_split("\"a 'b'\" 'c\\d'", "a 'b'|c\\d", 0);
	assert_split("a\\ b \"\\\"\"", "a b|\"", 0);
	assert_split("'' x", "|x", 0);
	assert_split("''", "", 0);
	assert_split("a%q{RANK}", "a%q{RANK}", 0);
	assert_split("back\\", "back\\", 0);
	assert_split("a b c d", "a|b|c|d", 0);
	assert_split("a b c d e", NULL, -E2BIG);
	assert_split("'open", NULL, -EINVAL);
	assert_split("\"open'", NULL, -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put),
		cmocka_unit_test(split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
