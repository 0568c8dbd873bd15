#include "base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../cmd/options.c"

/* ---- stand-ins for cmd/die.c: the program would end ---- */

static jmp_buf ended;
static char said[256];

void die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
	assert_int_equal(status, 2);
	longjmp(ended, 1);
}

int check_stdout(int status)
{
	return status;
}

static struct values {
	bool flag;
	bool with;
	int count;
	const char *string;
	uint64_t number;
	uint64_t limit;
	uint64_t size;
	int choice;
} got;

static const char *const choices[] = { "one", "two", "three", NULL };

static const struct opt opts[] = {
	OPT_FLAG('f', "flag", &got.flag, "a flag"),
	OPT_FLAG(0, "with-thing", &got.with, "with it"),
	OPT_COUNT('v', "verbose", &got.count, "a count"),
	OPT_STRING('s', "string", &got.string, "WORD", "a string\non two lines"),
	OPT_TITLE("numbers and words"),
	OPT_UINT('n', "number", &got.number, "N", 1, 1000, "a number"),
	OPT_UINT_OR_NOT('l', "limit", &got.limit, "N", 0, 1000, 10, "a limit"),
	OPT_SIZE(0, "size", &got.size, "SIZE", 1, UINT64_C(4) << 30, "a size"),
	OPT_CHOICE(0, "choice", &got.choice, "WHAT", choices, "a choice"),
};

static struct opt_command command = {
	.name = "test",
	.synopsis = "[options] FILE",
	.about = "Test",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
};

static struct gt_err err;

/* line: words with bars between them; operands come back the same way. */
static int parse_line(const char *line, char *operands, size_t len)
{
	static char copy[256];
	char *argv[32], *rest = copy;
	int argc = 0, operand = -1, rc;
	size_t used = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	argv[argc++] = (char *)(uintptr_t) "test";
	while (rest)
		argv[argc++] = strsep(&rest, "|");
	memset(&got, 0, sizeof(got));
	memset(&err, 0, sizeof(err));
	rc = opt_parse(&command, argc, argv, &operand, &err);
	operands[0] = 0;
	for (; !rc && operand < argc; operand++)
		used += (size_t)snprintf(operands + used, len - used, "%s%s", used ? "|" : "",
					 argv[operand]);
	return rc;
}

static void assert_parses(const char *line, const char *want_operands)
{
	char operands[256];

	if (parse_line(line, operands, sizeof(operands)))
		fail_msg("'%s': %s", line, err.msg);
	assert_string_equal(operands, want_operands);
}

static void assert_refuses(const char *line, const char *want)
{
	char operands[256];

	assert_int_equal(parse_line(line, operands, sizeof(operands)), -EINVAL);
	assert_string_equal(err.msg, want);
}

static void forms(void **state)
{
	(void)state;
	assert_parses("--flag|--string=a=b|--number|7|--size=2K|--choice|two|file", "file");
	assert_true(got.flag);
	assert_string_equal(got.string, "a=b");
	assert_int_equal(got.number, 7);
	assert_int_equal(got.size, 2048);
	assert_int_equal(got.choice, 1);
	assert_parses("-fvvn5|-sx|-s|y", "");
	assert_true(got.flag);
	assert_int_equal(got.count, 2);
	assert_int_equal(got.number, 5);
	assert_string_equal(got.string, "y");
	assert_parses("--flag|--no-flag|--string=", "");
	assert_false(got.flag);
	assert_string_equal(got.string, "");
	assert_parses("--with-thing", "");
	assert_true(got.with);
	assert_parses("--with-thing|--no-thing", "");
	assert_false(got.with);
	assert_parses("--with-thing|--no-with-thing", "");
	assert_false(got.with);
	assert_parses("--string|--flag", "");
	assert_string_equal(got.string, "--flag");
	assert_false(got.flag);
}

static void number_or_not(void **state)
{
	(void)state;
	assert_parses("--limit|7", "7");
	assert_int_equal(got.limit, 10);
	assert_parses("--limit=7", "");
	assert_int_equal(got.limit, 7);
	assert_parses("--limit=0|--limit", "");
	assert_int_equal(got.limit, 10);
	assert_parses("-lf|7", "7");
	assert_int_equal(got.limit, 10);
	assert_true(got.flag);
	assert_refuses("--limit=", "--limit takes a number from 0 to 1000, not ''");
	assert_refuses("--limit=1001", "--limit takes a number from 0 to 1000, not '1001'");
	assert_refuses("--no-limit", "unknown option '--no-limit'");
}

static void operands(void **state)
{
	(void)state;
	assert_parses("a|-f|b|--number|3|c", "a|b|c");
	assert_true(got.flag);
	assert_parses("a|--|-f|b", "a|-f|b");
	assert_false(got.flag);
	assert_parses("-|-f", "-");
	assert_parses("--|--", "--");
	command.stop_at_operand = true;
	assert_parses("-f|a|-n|x", "a|-n|x");
	assert_true(got.flag);
	assert_parses("-f|--|-n|x", "-n|x");
	assert_parses("-f|--|a|--|x", "a|--|x");
	assert_parses("a|--|x", "a|--|x");
	command.stop_at_operand = false;
}

static void unknown(void **state)
{
	(void)state;
	assert_refuses("--flg", "unknown option '--flg'");
	assert_refuses("--fla", "unknown option '--fla'");
	assert_refuses("--flags", "unknown option '--flags'");
	assert_refuses("--thing", "unknown option '--thing'");
	assert_refuses("--no-string", "unknown option '--no-string'");
	assert_refuses("--no-", "unknown option '--no-'");
	assert_refuses("--=x", "unknown option '--'");
	assert_refuses("-x", "unknown option '-x'");
	assert_refuses("-fx", "unknown option '-x'");
}

static void values(void **state)
{
	(void)state;
	assert_refuses("--flag=yes", "--flag takes no value");
	assert_refuses("--string", "--string needs a value");
	assert_refuses("-s", "-s (--string) needs a value");
	assert_refuses("--choice=four", "--choice takes one, two or three, not 'four'");
	assert_refuses("--choice=", "--choice takes one, two or three, not ''");
	assert_refuses("--number=0", "--number takes a number from 1 to 1000, not '0'");
	assert_refuses("--number=1001", "--number takes a number from 1 to 1000, not '1001'");
	assert_refuses("-n|-1", "--number takes a number from 1 to 1000, not '-1'");
	assert_refuses("-n1x", "--number takes a number from 1 to 1000, not '1x'");
	assert_refuses("-n|", "--number takes a number from 1 to 1000, not ''");
	assert_refuses("-n18446744073709551617",
		       "--number takes a number from 1 to 1000, not '18446744073709551617'");
	assert_refuses("--size=5G", "--size takes a size from 1 to 4G, not '5G'");
	assert_refuses("--size=0", "--size takes a size from 1 to 4G, not '0'");
}

static void sizes(void **state)
{
	uint64_t bytes;

	(void)state;
	assert_int_equal(opt_parse_size("0", &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(opt_parse_size("64M", &bytes), 0);
	assert_int_equal(bytes, 64 << 20);
	assert_int_equal(opt_parse_size("64MiB", &bytes), 0);
	assert_int_equal(bytes, 64 << 20);
	assert_int_equal(opt_parse_size("3kB", &bytes), 0);
	assert_int_equal(bytes, 3072);
	assert_int_equal(opt_parse_size("2g", &bytes), 0);
	assert_int_equal(bytes, UINT64_C(2) << 30);
	assert_int_equal(opt_parse_size("", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("M", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("1T", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("1MM", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("1 M", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("-1", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("1.5G", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("99999999999999999999", &bytes), -EINVAL);
	assert_int_equal(opt_parse_size("99999999999999999G", &bytes), -EINVAL);
}

static void times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = { { "0", 0 },          { "5", 5000 },       { "2.5", 2500 },
		     { "1.0625s", 1062 }, { "500ms", 500 },    { "1.5ms", 1 },
		     { "10m", 600000 },   { "1.5h", 5400000 }, { "0.001", 1 } };
	static const char *const bad[] = { "",
					   "s",
					   ".5",
					   "5.",
					   "5.s",
					   "5 s",
					   "-1",
					   "1e3",
					   "5S",
					   "5min",
					   "1.5.5",
					   "99999999999999999999",
					   "9999999999999999999s",
					   "1.00000000000" };
	uint64_t ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(opt_parse_time(good[i].text, &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(opt_parse_time(bad[i], &ms), -EINVAL);
}

static void help(void **state)
{
	char operands_[16], text[1024] = "";
	FILE *file = fmemopen(text, sizeof(text), "w");

	(void)state;
	assert_int_equal(parse_line("-h", operands_, sizeof(operands_)), 1);
	assert_int_equal(parse_line("a|--help|--bad", operands_, sizeof(operands_)), 1);
	assert_int_equal(parse_line("-fh", operands_, sizeof(operands_)), 1);
	opt_print_help(&command, file);
	fclose(file);
	assert_string_equal(text, "usage: gtrace test [options] FILE\n"
				  "Test.\n"
				  "\n"
				  "  -f, --flag                  a flag\n"
				  "      --with-thing            with it\n"
				  "  -v, --verbose               a count\n"
				  "  -s, --string WORD           a string\n"
				  "                              on two lines\n"
				  "\n"
				  "numbers and words:\n"
				  "  -n, --number N              a number\n"
				  "  -l, --limit[=N]             a limit\n"
				  "      --size SIZE             a size\n"
				  "      --choice WHAT           a choice\n"
				  "  -h, --help                  this text\n");
}

static void for_shells(void **state)
{
	char *argv[] = { (char *)"test", (char *)"--completion", NULL };
	char text[1024];
	FILE *file = fmemopen(text, sizeof(text), "w");
	int operand;

	(void)state;
	assert_non_null(file);
	assert_false(opt_wants_completion());
	assert_int_equal(opt_parse(&command, 2, argv, &operand, &err), 1);
	assert_true(opt_wants_completion());
	opt_print_help(&command, file);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(text, "--flag -f flag a flag\n"
				  "--with-thing - flag with it\n"
				  "--no-thing - flag not: with it\n"
				  "--verbose -v flag a count\n"
				  "--string -s value a string\n"
				  "--number -n value a number\n"
				  "--limit -l flag a limit\n"
				  "--size - value a size\n"
				  "--choice - choice:one,two,three a choice\n"
				  "--help -h flag this text\n"
				  "operand - file\n");
	for_completion = false;
}

/* What it says as it ends the program with status 2; NULL: it goes on. */
static const char *parse_all(const char *word)
{
	char copy[32], *argv[] = { (char *)"test", copy, NULL };

	snprintf(copy, sizeof(copy), "%s", word);
	memset(&got, 0, sizeof(got));
	if (setjmp(ended))
		return said;
	opt_parse_all(&command, 2, argv);
	return NULL;
}

static void options_alone(void **state)
{
	(void)state;
	assert_null(parse_all("-n7"));
	assert_int_equal(got.number, 7);
	assert_string_equal(parse_all("-n0"), "test: --number takes a number from 1 to 1000, not "
					      "'0'; see 'gtrace test -h'");
	assert_string_equal(parse_all("now"), "test: takes no 'now'; see 'gtrace test -h'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),      cmocka_unit_test(number_or_not),
		cmocka_unit_test(operands),   cmocka_unit_test(unknown),
		cmocka_unit_test(values),     cmocka_unit_test(sizes),
		cmocka_unit_test(times),      cmocka_unit_test(help),
		cmocka_unit_test(for_shells), cmocka_unit_test(options_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
