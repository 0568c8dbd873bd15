#include "train.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void usage(const struct option *table)
{
	fprintf(stderr, "usage: train");
	for (; table->name; table++)
		fprintf(stderr, " [--%s X]", table->name);
	fputc('\n', stderr);
	exit(2);
}

void train_parse(struct train_options *ret, int argc, char **argv)
{
	enum { NUMBERS_BEGIN = 256 };
#define TRAIN_DEFAULT(field, option, value, help) .field = value,
	struct train_options defaults = { TRAIN_NUMBERS(TRAIN_DEFAULT).marks = "api",
					  .range = "cuda" };
#undef TRAIN_DEFAULT
	int *const fields[] = {
#define TRAIN_ADDRESS(field, option, value, help) &ret->field,
		TRAIN_NUMBERS(TRAIN_ADDRESS)
#undef TRAIN_ADDRESS
	};
	struct option table[ARRAY_SIZE(fields) + 7] = {
#define TRAIN_OPTION(field, option, value, help) { option, required_argument, NULL, 0 },
		TRAIN_NUMBERS(TRAIN_OPTION)
#undef TRAIN_OPTION
			{ "marks", required_argument, NULL, 'm' },
		{ "truth", required_argument, NULL, 't' },
		{ "range", required_argument, NULL, 'r' },
		{ "ranges", required_argument, NULL, 's' },
		{ "tools-at", required_argument, NULL, 'l' },
		{ "tools-off-at", required_argument, NULL, 'o' },
	};
	int c;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		table[i].val = NUMBERS_BEGIN + (int)i;
	*ret = defaults;
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (c == 'm')
			ret->marks = optarg;
		else if (c == 't')
			ret->truth = optarg;
		else if (c == 'r')
			ret->range = optarg;
		else if (c == 's')
			ret->ranges = optarg;
		else if (c == 'l')
			ret->tools = optarg;
		else if (c == 'o')
			ret->tools_off = optarg;
		else if (c >= NUMBERS_BEGIN)
			*fields[c - NUMBERS_BEGIN] = atoi(optarg);
		else
			usage(table);
	}
	if (optind != argc || ret->threads < 1)
		usage(table);
}

void train_close_descriptors(int keep1, int keep2)
{
	const int keep[] = { GT_MIN(keep1, keep2), GT_MAX(keep1, keep2) };
	int from = 3;

	for (size_t i = 0; i < ARRAY_SIZE(keep); i++) {
		if (keep[i] > from)
			syscall(SYS_close_range, from, keep[i] - 1, 0);
		from = GT_MAX(from, keep[i] + 1);
	}
	syscall(SYS_close_range, from, UINT32_MAX, 0);
}
