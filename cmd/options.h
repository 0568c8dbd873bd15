/*
 * options.h - command lines: one table of options per command gives parsing, checks and --help.
 */
#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include "base.h"
#include "err.h"

enum opt_type {
	OPT_IS_FLAG,
	OPT_IS_COUNT,
	OPT_IS_STRING,
	OPT_IS_UINT,
	OPT_IS_UINT_OR_NOT,
	OPT_IS_SIZE,
	OPT_IS_TIME,
	OPT_IS_CHOICE,
	OPT_IS_TITLE
};

struct opt { /* made by the macros below */
	enum opt_type type;
	char letter;      /* "-x", 0: none */
	const char *name; /* "--name"; NULL: a title */
	const char *arg;  /* placeholder of its value in the help */
	const char *help; /* lines of at most 50 columns */
	bool *flag;
	int *number;
	const char **string;
	uint64_t *value;
	uint64_t min, max;
	uint64_t implied;           /* the number when there is none */
	const char *const *choices; /* NULL-terminated */
};

/* --name sets *to, --no-name clears it; of --with-name, --no-name does so, too. */
#define OPT_FLAG(c, text, to, what)                                                              \
	{                                                                                        \
		.type = OPT_IS_FLAG, .letter = (c), .name = (text), .flag = (to), .help = (what) \
	}
/* The same into the int at to, 1 or 0, which else stays as it is. */
#define OPT_SWITCH(c, text, to, what)                                                              \
	{                                                                                          \
		.type = OPT_IS_FLAG, .letter = (c), .name = (text), .number = (to), .help = (what) \
	}
/* Each one adds 1 to the int at to. */
#define OPT_COUNT(c, text, to, what)                                                 \
	{                                                                            \
		.type = OPT_IS_COUNT, .letter = (c), .name = (text), .number = (to), \
		.help = (what)                                                       \
	}
/* A word; *to points into argv. */
#define OPT_STRING(c, text, to, word, what)                                           \
	{                                                                             \
		.type = OPT_IS_STRING, .letter = (c), .name = (text), .string = (to), \
		.arg = (word), .help = (what)                                         \
	}
/* A number from low to high, into the uint64_t at to. */
#define OPT_UINT(c, text, to, word, low, high, what)                                              \
	{                                                                                         \
		.type = OPT_IS_UINT, .letter = (c), .name = (text), .value = (to), .arg = (word), \
		.min = (low), .max = (high), .help = (what)                                       \
	}
/* The same, as --name=N or as --name alone, which stands for a number of its own. */
#define OPT_UINT_OR_NOT(c, text, to, word, low, high, without, what)                             \
	{                                                                                        \
		.type = OPT_IS_UINT_OR_NOT, .letter = (c), .name = (text), .value = (to),        \
		.arg = (word), .min = (low), .max = (high), .implied = (without), .help = (what) \
	}
/* The same in bytes; K, M and G are 1024-based. */
#define OPT_SIZE(c, text, to, word, low, high, what)                                              \
	{                                                                                         \
		.type = OPT_IS_SIZE, .letter = (c), .name = (text), .value = (to), .arg = (word), \
		.min = (low), .max = (high), .help = (what)                                       \
	}
/* A time from low to high ms, in seconds or with its unit, into the uint64_t at to as ms. */
#define OPT_TIME(c, text, to, word, low, high, what)                                              \
	{                                                                                         \
		.type = OPT_IS_TIME, .letter = (c), .name = (text), .value = (to), .arg = (word), \
		.min = (low), .max = (high), .help = (what)                                       \
	}
/* One of the words of a NULL-terminated list; its index goes into the int at to. */
#define OPT_CHOICE(c, text, to, word, list, what)                                     \
	{                                                                             \
		.type = OPT_IS_CHOICE, .letter = (c), .name = (text), .number = (to), \
		.arg = (word), .choices = (list), .help = (what)                      \
	}

/* No option: a line of the help above those that follow. */
#define OPT_TITLE(what)                              \
	{                                            \
		.type = OPT_IS_TITLE, .help = (what) \
	}

struct opt_command {
	const char *name;     /* "run"; "" for gtrace itself */
	const char *synopsis; /* what follows the name: "[options] -- command [args]" */
	const char *about;    /* one line */
	const struct opt *opts;
	size_t count;
	bool stop_at_operand; /* what follows the first operand belongs to it */
};

/*
 * Parse argv[1..argc). Operands are moved to its end, the index of the first is *ret_operand ("--"
 * is left out). 0; 1 when -h or --help was met; -EINVAL with a message that names the option and
 * what it takes. Names are not abbreviated: a script that works today must not become ambiguous
 * with the next version.
 */
int opt_parse(const struct opt_command *command, int argc, char **argv, int *ret_operand,
	      struct gt_err *err);

/*
 * The same for most commands: these end the program with the help, or with status 2 and what is
 * wrong. With any operands: the index of the first; without; with one, which is a file, no
 * directory, and returned.
 */
int opt_parse_any(const struct opt_command *command, int argc, char **argv);
void opt_parse_all(const struct opt_command *command, int argc, char **argv);
const char *opt_parse_file(const struct opt_command *command, int argc, char **argv);

/*
 * The text of -h and --help. Or, when the only word was --completion, what the shells' functions in
 * cmd/completion read: a line "NAME LETTER KIND text" for each option, with - for no letter; KIND
 * is flag, value, directory, file, program, or choice:a,b,c. A line "operand - KIND" is of what
 * follows the options: command, program, file, or none.
 */
void opt_print_help(const struct opt_command *command, FILE *file);

/* Was that the word? */
bool opt_wants_completion(void);

/* text as a number of bytes, with K, M or G; 0 or -EINVAL. */
int opt_parse_size(const char *text, uint64_t *ret);

/* text as a time in ms: seconds, or with s, ms, m or h behind; also 1.5. 0 or -EINVAL. */
int opt_parse_time(const char *text, uint64_t *ret);

#endif
