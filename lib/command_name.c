#include "base.h"
#include "command_name.h"
#include "session.h"

/* Programs and Python modules that run the command on their command line. */
static const struct launcher {
	const char *name;
	int operands;       /* of its own, before the command */
	const char *valued; /* its options with a value behind them; NULL: not known here */
} launchers[] = {
	{ "torchrun", 0, NULL },
	{ "torch.distributed.run", 0, NULL },
	{ "torch.distributed.launch", 0, NULL },
	{ "accelerate", 1, NULL }, /* "launch" */
	{ "accelerate.commands.launch", 0, NULL },
	{ "deepspeed", 0, NULL },
	{ "deepspeed.launcher.runner", 0, NULL },
	{ "horovodrun", 0, NULL },
	{ "composer", 0, NULL },
	{ "mpirun", 0, NULL },
	{ "mpiexec", 0, NULL },
	{ "orterun", 0, NULL },
	{ "prterun", 0, NULL },
	{ "srun", 0, NULL },
	{ "env", 0, "-u --unset -C --chdir -a --argv0" },
	{ "nice", 0, "-n --adjustment" },
	{ "nohup", 0, "" },
	{ "setsid", 0, "" },
	{ "stdbuf", 0, "-i --input -o --output -e --error" },
	{ "sudo", 0, NULL },
	{ "time", 0, "-f --format -o --output" },
	{ "numactl", 0, NULL },
	{ "ionice", 0, "-c --class -n --classdata -p --pid -P --pgid -u --uid" },
	{ "taskset", 1, "" },
	{ "timeout", 1, "-k --kill-after -s --signal" },
	{ "uv", 1, NULL }, /* "run" */
	{ "poetry", 1, NULL },
	{ "conda", 1, NULL },
	{ "pixi", 1, NULL },
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t len = strlen(text), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(text + len - suffix_len, suffix);
}

static bool is_script(const char *path)
{
	return ends_with(path, ".py") || ends_with(path, ".pyc") || ends_with(path, ".pyz") ||
	       ends_with(path, ".sh");
}

/* base, perhaps with a version: python, python3, python3.11 */
static bool is_program(const char *path, const char *base)
{
	const char *name = base_name(path);

	return !strncmp(name, base, strlen(base)) &&
	       strspn(name + strlen(base), "0123456789.") == strlen(name + strlen(base));
}

static bool is_python(const char *path)
{
	return is_program(path, "python") || is_program(path, "pypy") ||
	       is_program(path, "ipython");
}

static bool is_shell(const char *path)
{
	return is_program(path, "sh") || is_program(path, "bash") || is_program(path, "dash") ||
	       is_program(path, "zsh");
}

static const struct launcher *find_launcher(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(launchers); i++)
		if (!strcmp(name, launchers[i].name))
			return &launchers[i];
	return NULL;
}

/* Where the walk through the command line is. */
struct walk {
	const char *word;  /* a program's path, a script's path or a module's name */
	char *const *rest; /* the arguments behind it */
	bool is_module;
};

static void walk_to(struct walk *walk, char *const *arg, bool is_module)
{
	walk->word = *arg;
	walk->rest = arg + 1;
	walk->is_module = is_module;
}

/* An option of an mpirun with a name and a value: -mca, --prtemca and such of Open MPI, -genv of
 * others. */
static bool takes_two(const char *word)
{
	return *word == '-' &&
	       (ends_with(word, "mca") || !strcmp(word, "-genv") || !strcmp(word, "-env"));
}

/* Is the word behind this option its value? Where that is not known, unless it is a path. */
static bool takes_value(const struct launcher *launcher, const char *option, const char *behind)
{
	size_t len = strlen(option);

	if (!behind || strchr(option, '='))
		return false;
	if (!launcher->valued)
		return *behind != '-' && !strchr(behind, '/');
	for (const char *at = launcher->valued; *at; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");

		if (word == len && !strncmp(at, option, len))
			return true;
		at += word;
	}
	return false;
}

/*
 * To the command in a launcher's arguments. Scripts and interpreters are told by their names; other
 * commands by their place. False when there is none.
 */
static bool walk_launcher(struct walk *walk, const struct launcher *launcher)
{
	int operands = launcher->operands;
	char *const *arg;

	for (arg = walk->rest; *arg && strcmp(*arg, "--"); arg++) {
		if ((!strcmp(*arg, "-m") || !strcmp(*arg, "--module")) && arg[1]) {
			walk_to(walk, arg + 1, true);
			return true;
		}
		if (is_script(*arg) || is_python(*arg)) {
			walk_to(walk, arg, false);
			return true;
		}
	}
	for (arg = walk->rest; *arg; arg++) {
		if (!strcmp(*arg, "--")) {
			operands = 0;
		} else if (takes_two(*arg)) {
			arg += arg[1] ? 1 + (arg[2] != NULL) : 0;
		} else if (**arg == '-') {
			arg += takes_value(launcher, *arg, arg[1]);
		} else if (!strchr(*arg, '=') && !operands--) { /* not env's NAME=VALUE */
			walk_to(walk, arg, false);
			return true;
		}
	}
	return false;
}

/* To what a Python interpreter runs. False when it is the text of -c, or standard input. */
static bool walk_python(struct walk *walk)
{
	char *const *arg;
	const char *letter;

	for (arg = walk->rest; *arg && **arg == '-'; arg++) {
		if (!strcmp(*arg, "--check-hash-based-pycs") && arg[1])
			arg++;
		if ((*arg)[1] == '-')
			continue;
		letter = *arg + 1 + strcspn(*arg + 1, "cmWX");
		if (*letter == 'c' || !(*arg)[1])
			return false;
		if (!*letter)
			continue;
		if (!letter[1] && !arg[1])
			return false;
		if (*letter == 'm') {
			walk_to(walk, letter[1] ? arg : arg + 1, true);
			if (letter[1])
				walk->word = letter + 1;
			return true;
		}
		if (!letter[1])
			arg++;
	}
	if (!*arg)
		return false;
	walk_to(walk, arg, false);
	return true;
}

/* To the script of a shell. False when it is the text of -c, or standard input. */
static bool walk_shell(struct walk *walk)
{
	char *const *arg;

	for (arg = walk->rest; *arg && (**arg == '-' || **arg == '+'); arg++) {
		bool is_long = (*arg)[1] == '-';

		if (!is_long && **arg == '-' && strchr(*arg, 'c'))
			return false;
		/* -o pipefail, -euo pipefail, +O extglob */
		if (arg[1] && (is_long ? !strcmp(*arg, "--rcfile") || !strcmp(*arg, "--init-file")
				       : strpbrk(*arg, "oO") != NULL))
			arg++;
	}
	if (!*arg)
		return false;
	walk_to(walk, arg, false);
	return true;
}

static bool walk_on(struct walk *walk)
{
	const char *name = walk->is_module ? walk->word : base_name(walk->word);
	const struct launcher *launcher = find_launcher(name);

	if (launcher)
		return walk_launcher(walk, launcher);
	if (walk->is_module)
		return false;
	return (is_python(name) && walk_python(walk)) || (is_shell(name) && walk_shell(walk));
}

bool gt_command_is_launcher(const char *path)
{
	return find_launcher(base_name(path));
}

void gt_command_name(char *const *argv, char *buf, size_t len)
{
	struct walk walk = { .word = argv[0], .rest = argv + 1 };
	const char *name, *end;
	size_t i;

	while (walk_on(&walk))
		;
	if (walk.is_module) {
		name = strrchr(walk.word, '.');
		name = name && name[1] ? name + 1 : walk.word;
		end = name + strlen(name);
	} else {
		name = is_python(walk.word) ? "python" : base_name(walk.word);
		end = name + strlen(name);
		if (is_script(name))
			end = strrchr(name, '.');
	}
	len = GT_MIN(len, GT_SESSION_NAME_MAX + 1);
	for (i = 0; i + 1 < len && name + i < end; i++)
		buf[i] = (unsigned char)name[i] < ' ' || strchr("/\x7f", name[i]) ? '_' : name[i];
	while (i && (name[i] & 0xc0) == 0x80) /* not within a UTF-8 character */
		i--;
	buf[i] = 0;
	if (!i)
		snprintf(buf, len, "trace");
	else if (buf[0] == '.')
		buf[0] = '_';
}
