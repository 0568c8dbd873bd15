#include "base.h"
#include "cmd.h"
#include "die.h"
#include "options.h"

#include <stdlib.h>
#include <sys/stat.h>

#define HELP_COLUMN 30

/* The help is for a shell that completes a command line. */
static bool for_completion;

static bool is_named(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && !strncmp(name, text, len);
}

static const struct opt *find_long(const struct opt_command *command, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < command->count; i++)
		if (command->opts[i].name && is_named(command->opts[i].name, name, len))
			return &command->opts[i];
	return NULL;
}

static const struct opt *find_letter(const struct opt_command *command, char letter)
{
	size_t i;

	for (i = 0; i < command->count; i++)
		if (command->opts[i].letter == letter)
			return &command->opts[i];
	return NULL;
}

/* As its next word, when it has no other. */
static bool needs_value(const struct opt *opt)
{
	return opt->type != OPT_IS_FLAG && opt->type != OPT_IS_COUNT &&
	       opt->type != OPT_IS_UINT_OR_NOT;
}

/* Digits only: no sign, no space. False also when the number is beyond 64 bits. */
static bool parse_digits(const char **text, uint64_t *ret)
{
	const char *c = *text;
	uint64_t value = 0;

	for (; gt_is_digit(*c); c++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
			return false;
	if (c == *text)
		return false;
	*text = c;
	*ret = value;
	return true;
}

int opt_parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *unit;
	uint64_t value;

	if (!parse_digits(&text, &value))
		return -EINVAL;
	if (*text) {
		unit = strchr(units, *text & ~0x20); /* k, m and g, too */
		if (!unit || !*unit ||
		    __builtin_mul_overflow(value, UINT64_C(1) << (10 * (unit - units + 1)), &value))
			return -EINVAL;
		text++;
		/* "64MiB" and "64MB" are what people write; both mean 1024. */
		if (!strcmp(text, "iB") || !strcmp(text, "B"))
			text += strlen(text);
	}
	if (*text)
		return -EINVAL;
	*ret = value;
	return 0;
}

int opt_parse_time(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = { { "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "m", 60000 }, { "h", 3600000 } };
	uint64_t value, rest = 0, scale = 1;
	size_t i;

	if (!parse_digits(&text, &value))
		return -EINVAL;
	if (*text == '.') {
		const char *point = text++;

		if (!parse_digits(&text, &rest) || text - point > 10)
			return -EINVAL;
		while (++point < text)
			scale *= 10;
	}
	for (i = 0; i < ARRAY_SIZE(units) && strcmp(text, units[i].name); i++)
		;
	if (i == ARRAY_SIZE(units) || __builtin_mul_overflow(value, units[i].ms, &value) ||
	    __builtin_add_overflow(value, rest * units[i].ms / scale, ret))
		return -EINVAL;
	return 0;
}

/* bytes as the user may write it back */
static void format_size(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = { "", "K", "M", "G" };
	size_t unit = 0;

	while (unit + 1 < ARRAY_SIZE(units) && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, len, "%llu%s", (unsigned long long)bytes, units[unit]);
}

static int set_number(const struct opt *opt, const char *text, struct gt_err *err)
{
	char min[32], max[32];
	uint64_t value;
	bool ok;

	if (opt->type == OPT_IS_SIZE) {
		format_size(opt->min, min, sizeof(min));
		format_size(opt->max, max, sizeof(max));
		ok = !opt_parse_size(text, &value);
	} else if (opt->type == OPT_IS_TIME) {
		if (!opt_parse_time(text, &value) && value >= opt->min && value <= opt->max) {
			*opt->value = value;
			return 0;
		}
		return gt_err_set(err, -EINVAL,
				  "--%s takes a time such as 5, 2.5s, 500ms or 10m, not '%s'",
				  opt->name, text);
	} else {
		const char *end = text;

		snprintf(min, sizeof(min), "%llu", (unsigned long long)opt->min);
		snprintf(max, sizeof(max), "%llu", (unsigned long long)opt->max);
		ok = parse_digits(&end, &value) && !*end;
	}
	if (!ok || value < opt->min || value > opt->max)
		return gt_err_set(err, -EINVAL, "--%s takes a %s from %s to %s, not '%s'",
				  opt->name, opt->type == OPT_IS_SIZE ? "size" : "number", min, max,
				  text);
	*opt->value = value;
	return 0;
}

static void list_choices(const struct opt *opt, char *buf, size_t len)
{
	size_t i, used = 0;
	int n;

	for (i = 0; opt->choices[i] && used < len; i++) {
		n = snprintf(buf + used, len - used, "%s%s",
			     !i                    ? ""
			     : opt->choices[i + 1] ? ", "
						   : " or ",
			     opt->choices[i]);
		used += n < 0 ? 0 : (size_t)n;
	}
}

static int set_choice(const struct opt *opt, const char *text, struct gt_err *err)
{
	char choices[128];
	int i;

	for (i = 0; opt->choices[i]; i++)
		if (!strcmp(text, opt->choices[i])) {
			*opt->number = i;
			return 0;
		}
	list_choices(opt, choices, sizeof(choices));
	return gt_err_set(err, -EINVAL, "--%s takes %s, not '%s'", opt->name, choices, text);
}

static int set(const struct opt *opt, const char *text, bool on, struct gt_err *err)
{
	switch (opt->type) {
	case OPT_IS_FLAG:
		if (opt->flag)
			*opt->flag = on;
		else
			*opt->number = on;
		return 0;
	case OPT_IS_COUNT:
		++*opt->number;
		return 0;
	case OPT_IS_STRING:
		*opt->string = text;
		return 0;
	case OPT_IS_UINT_OR_NOT:
		if (!text) {
			*opt->value = opt->implied;
			return 0;
		}
		return set_number(opt, text, err);
	case OPT_IS_UINT:
	case OPT_IS_SIZE:
	case OPT_IS_TIME:
		return set_number(opt, text, err);
	case OPT_IS_CHOICE:
		return set_choice(opt, text, err);
	case OPT_IS_TITLE:
		break;
	}
	return -EINVAL;
}

/* The flag that --no-name clears: --name or --with-name. */
static const struct opt *find_negated(const struct opt_command *command, const char *name,
				      size_t len)
{
	static const char with[] = "with-";

	for (size_t i = 0; i < command->count; i++) {
		const struct opt *opt = &command->opts[i];
		size_t skip;

		if (opt->type != OPT_IS_FLAG)
			continue;
		skip = strncmp(opt->name, with, sizeof(with) - 1) ? 0 : sizeof(with) - 1;
		if (is_named(opt->name, name, len) || is_named(opt->name + skip, name, len))
			return opt;
	}
	return NULL;
}

/* "--name", "--name=value", "--name value", "--no-name". *index moves over a separate value. */
static int parse_long(const struct opt_command *command, int argc, char **argv, int *index,
		      struct gt_err *err)
{
	const char *name = argv[*index] + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	const struct opt *opt = find_long(command, name, len);
	bool on = true;

	if (!opt && len > 3 && !strncmp(name, "no-", 3)) {
		opt = find_negated(command, name + 3, len - 3);
		on = false;
	}
	if (!opt)
		return gt_err_set(err, -EINVAL, "unknown option '--%.*s'", (int)GT_MIN(len, 200u),
				  name);
	if (!needs_value(opt) && !value)
		return set(opt, NULL, on, err);
	if (opt->type == OPT_IS_FLAG || opt->type == OPT_IS_COUNT)
		return gt_err_set(err, -EINVAL, "--%s takes no value", opt->name);
	if (value)
		value++;
	else if (*index + 1 < argc)
		value = argv[++*index];
	else
		return gt_err_set(err, -EINVAL, "--%s needs a value", opt->name);
	return set(opt, value, true, err);
}

/* "-x", "-xvalue", "-x value", "-xyz". */
static int parse_letters(const struct opt_command *command, int argc, char **argv, int *index,
			 struct gt_err *err)
{
	const char *letter = argv[*index] + 1;
	const struct opt *opt;
	int rc;

	for (; *letter; letter++) {
		if (*letter == 'h')
			return 1;
		opt = find_letter(command, *letter);
		if (!opt)
			return gt_err_set(err, -EINVAL, "unknown option '-%c'", *letter);
		if (needs_value(opt)) {
			if (letter[1])
				return set(opt, letter + 1, true, err);
			if (*index + 1 == argc)
				return gt_err_set(err, -EINVAL, "-%c (--%s) needs a value", *letter,
						  opt->name);
			return set(opt, argv[++*index], true, err);
		}
		rc = set(opt, NULL, true, err);
		if (rc)
			return rc;
	}
	return 0;
}

int opt_parse(const struct opt_command *command, int argc, char **argv, int *ret_operand,
	      struct gt_err *err)
{
	int index, kept = 1, rc, i;

	if (argc == 2 && !strcmp(argv[1], "--completion")) {
		for_completion = true;
		return 1;
	}
	/* argv[1..kept) are the operands met so far. */
	for (index = 1; index < argc; index++) {
		if (argv[index][0] != '-' || !argv[index][1]) {
			if (command->stop_at_operand)
				break;
			argv[kept++] = argv[index];
			continue;
		}
		if (!strcmp(argv[index], "--")) {
			index++;
			break;
		}
		if (!strcmp(argv[index], "--help"))
			return 1;
		rc = argv[index][1] == '-' ? parse_long(command, argc, argv, &index, err)
					   : parse_letters(command, argc, argv, &index, err);
		if (rc)
			return rc;
	}
	*ret_operand = index;
	for (i = kept; i-- > 1;)
		argv[--*ret_operand] = argv[i];
	return 0;
}

static void print_option(const struct opt *opt, FILE *file)
{
	const char *line = opt->help, *end = strchrnul(line, '\n');
	char left[64];

	if (opt->type == OPT_IS_TITLE) {
		fprintf(file, "\n%s:\n", opt->help);
		return;
	}
	snprintf(left, sizeof(left), "  %c%c%c --%s%s%s%s", opt->letter ? '-' : ' ',
		 opt->letter ? opt->letter : ' ', opt->letter ? ',' : ' ', opt->name,
		 !opt->arg                         ? ""
		 : opt->type == OPT_IS_UINT_OR_NOT ? "[="
						   : " ",
		 opt->arg ? opt->arg : "", opt->type == OPT_IS_UINT_OR_NOT ? "]" : "");
	fprintf(file, "%-*s%.*s\n", HELP_COLUMN, left, (int)(end - line), line);
	while (*end) {
		line = end + 1;
		end = strchrnul(line, '\n');
		fprintf(file, "%*s%.*s\n", HELP_COLUMN, "", (int)(end - line), line);
	}
}

/* ---- for shells ---- */

bool opt_wants_completion(void)
{
	return for_completion;
}

/* By the placeholder in the help. */
static const char *kind_of_word(const char *word)
{
	static const struct {
		const char *word;
		const char *kind;
	} kinds[] = {
		{ "DIR", "directory" },
		{ "FILE", "file" },
		{ "OUT", "file" },
		{ "PROGRAM", "program" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(word, kinds[i].word))
			return kinds[i].kind;
	return "value";
}

static const char *kind_of_operand(const struct opt_command *command)
{
	if (!*command->name)
		return "command";
	if (command->stop_at_operand)
		return "program";
	return strstr(command->synopsis, "FILE") ? "file" : "none";
}

static void print_words(const struct opt *opt, FILE *file)
{
	char letter[] = { '-', opt->letter, '\0' };

	fprintf(file, "--%s %s ", opt->name, letter);
	if (opt->type == OPT_IS_CHOICE)
		for (size_t i = 0; opt->choices[i]; i++)
			fprintf(file, "%s%s", i ? "," : "choice:", opt->choices[i]);
	else
		fputs(needs_value(opt) ? kind_of_word(opt->arg) : "flag", file);
	fprintf(file, " %.*s\n", (int)strcspn(opt->help, "\n"), opt->help);
	if (opt->type == OPT_IS_FLAG && !strncmp(opt->name, "with-", 5))
		fprintf(file, "--no-%s - flag not: %.*s\n", opt->name + 5,
			(int)strcspn(opt->help, "\n"), opt->help);
}

static void print_completion(const struct opt_command *command, FILE *file)
{
	for (size_t i = 0; i < command->count; i++)
		if (command->opts[i].type != OPT_IS_TITLE)
			print_words(&command->opts[i], file);
	fprintf(file, "--help -h flag this text\noperand - %s\n", kind_of_operand(command));
}

void opt_print_help(const struct opt_command *command, FILE *file)
{
	size_t i;

	if (for_completion) {
		print_completion(command, file);
		return;
	}
	fprintf(file, "usage: gtrace %s%s%s\n%s.\n", command->name, *command->name ? " " : "",
		command->synopsis, command->about);
	if (!command->count || command->opts->type != OPT_IS_TITLE)
		fputc('\n', file);
	for (i = 0; i < command->count; i++)
		print_option(&command->opts[i], file);
	fprintf(file, "  -h, %-*sthis text\n", HELP_COLUMN - 6, "--help");
}

int opt_parse_any(const struct opt_command *command, int argc, char **argv)
{
	struct gt_err err;
	int operand, rc = opt_parse(command, argc, argv, &operand, &err);

	if (rc < 0)
		die(STATUS_USAGE, "%s: %s; see 'gtrace %s -h'", command->name, err.msg,
		    command->name);
	if (rc > 0) {
		opt_print_help(command, stdout);
		exit(check_stdout(0));
	}
	return operand;
}

void opt_parse_all(const struct opt_command *command, int argc, char **argv)
{
	int operand = opt_parse_any(command, argc, argv);

	if (operand < argc)
		die(STATUS_USAGE, "%s: takes no '%s'; see 'gtrace %s -h'", command->name,
		    argv[operand], command->name);
}

const char *opt_parse_file(const struct opt_command *command, int argc, char **argv)
{
	int operand = opt_parse_any(command, argc, argv);
	struct stat st;

	if (operand + 1 != argc)
		die(STATUS_USAGE, "%s: %s see 'gtrace %s -h'", command->name,
		    operand == argc ? "which file?" : "one file at a time;", command->name);
	if (strcmp(argv[operand], "-") != 0 && stat(argv[operand], &st) == 0 && S_ISDIR(st.st_mode))
		die(STATUS_USAGE, "%s: '%s' is a directory; name one of its traces", command->name,
		    argv[operand]);
	return argv[operand];
}
