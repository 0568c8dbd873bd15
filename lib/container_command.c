#include "base.h"
#include "command_name.h"
#include "container_command.h"
#include "job.h"
#include "shell_words.h"

/* Where gtrace and the traces are inside. */
#define INSIDE     "/opt/gtrace"
#define TRACES     "/traces"
#define RENDEZVOUS "/rendezvous"

/*
 * The options without a value, or with one only behind '=': without them it cannot be told where
 * the image and the command stand. Others are taken to have one. From docker-run(1), podman-run(1),
 * action_flags.go of Apptainer, doc/cmd/start.md of Enroot, srun(1) and the README of Pyxis.
 */
#define DOCKER_FLAGS                                                                   \
	" detach disable-content-trust env-host help http-proxy init interactive "     \
	"no-healthcheck no-hostname no-hosts oom-kill-disable passwd privileged "      \
	"publish-all quiet read-only read-only-tmpfs replace rm rmi rootfs sig-proxy " \
	"tls-verify tty unsetenv-all "
#define APPTAINER_FLAGS                                                              \
	" allow-setuid boot cleanenv compat contain containall disable-cache "       \
	"fakeroot help ignore-fakeroot-command ignore-subuid ignore-userns ipc "     \
	"keep-privs net no-eval no-home no-init no-nv no-privs no-rocm no-umask nv " \
	"nvccli oom-kill-disable pid rocm underlay unsquash userns uts vm vm-err "   \
	"writable writable-tmpfs "
#define SRUN_FLAGS                                                                     \
	" bcast compress container-entrypoint container-mount-home "                   \
	"container-readonly container-remap-root container-writable contiguous "       \
	"disable-status exact exclusive help hold immediate kill-on-bad-exit label "   \
	"multi-prog nice no-allocate no-container-entrypoint no-container-mount-home " \
	"no-container-remap-root no-kill overcommit overlap oversubscribe "            \
	"preserve-env propagate pty quiet quit-on-interrupt reboot resv-ports "        \
	"send-libs spread-job test-only unbuffered use-min-nodes verbose x11 "

static const struct runtime {
	const char *name;
	const char *start;   /* words that start a container */
	const char *enter;   /* and those that enter one */
	const char *flags;   /* options without a value */
	const char *letters; /* the same, short */
	const char *mount;   /* the option, with a value FROM:TO */
	const char *pass;    /* the option that passes a variable on; NULL: all are */
	const char *read_only;
	int images; /* operands before the command */
} runtimes[] = {
	{ "docker", " run create ", " exec ", DOCKER_FLAGS, "ditPq", "-v", "-e", ":ro", 1 },
	{ "podman", " run create ", " exec ", DOCKER_FLAGS, "ditPq", "-v", "-e", ":ro", 1 },
	{ "nerdctl", " run create ", " exec ", DOCKER_FLAGS, "ditPq", "-v", "-e", ":ro", 1 },
	{ "nvidia-docker", " run create ", " exec ", DOCKER_FLAGS, "ditPq", "-v", "-e", ":ro", 1 },
	{ "apptainer", " exec run ", " ", APPTAINER_FLAGS, "cCefinpuw", "--bind", NULL, ":ro", 1 },
	{ "singularity", " exec run ", " ", APPTAINER_FLAGS, "cCefinpuw", "--bind", NULL, ":ro",
	  1 },
	{ "enroot", " start ", " ", " root rw ", "rw", "--mount", "--env", "", 1 },
	/* Pyxis: no word starts a container, but an option */
	{ "srun", NULL, NULL, SRUN_FLAGS, "EHIKOQXZklsuv", "--container-mounts", NULL, ":ro", 0 },
};

struct parts { /* of argv: indices */
	const struct runtime *runtime;
	size_t options; /* of the runtime's word */
	size_t command; /* in the container; where it would be when there is none */
	bool enters;    /* a container that runs already */
};

/* Is word, of len bytes, in a list of words each between blanks? */
static bool is_among(const char *list, const char *word, size_t len)
{
	const char *at = list;

	if (!len)
		return false;
	for (at = strchr(at, ' '); at && at[1]; at = strchr(at + 1, ' '))
		if (!strncmp(at + 1, word, len) && at[1 + len] == ' ')
			return true;
	return false;
}

static const struct runtime *find_runtime(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (!strcmp(name, runtimes[i].name))
			return &runtimes[i];
	return NULL;
}

/* How many words an option takes. */
static size_t option_words(const struct runtime *runtime, const char *word)
{
	const char *letter;

	if (word[1] == '-')
		return strchr(word, '=') || is_among(runtime->flags, word + 2, strlen(word + 2))
			       ? 1
			       : 2;
	for (letter = word + 1; *letter && strchr(runtime->letters, *letter); letter++)
		;
	return *letter && !letter[1] ? 2
				     : 1; /* of the first that takes one the rest is its value */
}

/* Of srun, among its own options. */
static bool has_image(char *const *words)
{
	const struct runtime *srun = find_runtime("srun");

	for (size_t i = 0; words[i] && words[i][0] == '-' && words[i][1];) {
		if (!strncmp(words[i], "--container-image", 17) ||
		    !strncmp(words[i], "--container-name", 16))
			return true;
		for (size_t n = option_words(srun, words[i]); n && words[i]; n--)
			i++;
	}
	return false;
}

/* To the runtime's word, such as run, behind its own options; 0: it does nothing of ours. */
static size_t find_verb(const struct runtime *runtime, char *const *argv, size_t at,
			bool *ret_enters)
{
	bool after_option = false;

	for (at++; argv[at]; at++) {
		size_t len = strlen(argv[at]);

		*ret_enters = is_among(runtime->enter, argv[at], len);
		if (*ret_enters || is_among(runtime->start, argv[at], len))
			return at;
		if (argv[at][0] != '-' && !after_option && strcmp(argv[at], "container"))
			return 0;
		after_option = argv[at][0] == '-' && !strchr(argv[at], '=');
	}
	return 0;
}

static bool parse_at(char *const *argv, size_t at, struct parts *ret)
{
	struct parts parts = { .runtime = find_runtime(argv[at]) };
	size_t verb = at;
	int images;

	if (!parts.runtime)
		return false;
	if (parts.runtime->start)
		verb = find_verb(parts.runtime, argv, at, &parts.enters);
	else if (!has_image(argv + at + 1))
		return false;
	if (parts.runtime->start && !verb)
		return false;
	parts.options = parts.command = verb + 1;
	while (argv[parts.command] && argv[parts.command][0] == '-' && argv[parts.command][1]) {
		size_t words = option_words(parts.runtime, argv[parts.command]);

		if (!strcmp(argv[parts.command], "--"))
			words = 1;
		for (; words && argv[parts.command]; words--)
			parts.command++;
	}
	for (images = parts.runtime->images; images && argv[parts.command]; images--)
		parts.command++;
	*ret = parts;
	return true;
}

static bool parse(char *const *argv, struct parts *ret)
{
	for (size_t i = 0; argv[i]; i++) {
		if (parse_at(argv, i, ret))
			return true;
		if (!i && !gt_command_is_launcher(argv[0]))
			return false;
	}
	return false;
}

const char *gt_container_runtime(char *const *argv)
{
	struct parts parts;

	return parse(argv, &parts) ? parts.runtime->name : NULL;
}

/* ---- the command line ---- */

static void put_word(struct gt_buf *out, const char *word)
{
	if (out->len)
		gt_buf_byte(out, ' ');
	gt_shell_put(out, word);
}

/* Pyxis has all of them in one word. */
static bool is_list(const struct runtime *runtime)
{
	return !runtime->start;
}

/* "FROM:TO:ro", to a list or as an option. */
static void put_mount(struct gt_buf *out, const struct runtime *runtime, const char *from,
		      int from_len, const char *to, bool read_only)
{
	struct gt_buf text = { 0 };

	gt_buf_printf(&text, "%.*s:%s%s", from_len, from, to, read_only ? runtime->read_only : "");
	gt_buf_byte(&text, '\0');
	if (text.failed) {
		out->failed = true;
	} else if (is_list(runtime)) {
		gt_buf_printf(out, "%s%s", out->len ? "," : "", text.data);
	} else {
		put_word(out, runtime->mount);
		put_word(out, text.data);
	}
	gt_buf_release(&text);
}

static int dir_len(const char *path)
{
	return (int)(strrchr(path, '/') - path);
}

/* Gtrace's program and library lie in one directory where it was built, in two once installed. */
static bool is_in_one(const struct gt_container_setup *setup)
{
	int len = dir_len(setup->program);

	return len == dir_len(setup->injection) &&
	       !strncmp(setup->program, setup->injection, (size_t)len);
}

static void put_mounts(struct gt_buf *out, const struct runtime *runtime,
		       const struct gt_container_setup *setup)
{
	if (is_in_one(setup)) {
		put_mount(out, runtime, setup->program, dir_len(setup->program), INSIDE "/bin",
			  true);
	} else {
		put_mount(out, runtime, setup->program, (int)strlen(setup->program),
			  INSIDE "/bin/gtrace", true);
		put_mount(out, runtime, setup->injection, dir_len(setup->injection),
			  INSIDE "/lib/gtrace", true);
	}
	put_mount(out, runtime, setup->output_dir, (int)strlen(setup->output_dir), TRACES, false);
	if (setup->rendezvous)
		put_mount(out, runtime, setup->rendezvous, (int)strlen(setup->rendezvous),
			  RENDEZVOUS, false);
}

/* Is it a variable that this launcher will set? */
static bool is_set_by(const char *launcher, const char *variable)
{
	static const struct {
		const char *launcher;
		const char *prefix;
	} sets[] = {
		{ "mpirun", "OMPI_" },  { "mpirun", "PMIX_" },  { "mpirun", "PMI_" },
		{ "mpiexec", "OMPI_" }, { "mpiexec", "PMIX_" }, { "mpiexec", "PMI_" },
		{ "mpiexec", "PALS_" }, { "srun", "SLURM_" },
	};
	const char *slash = strrchr(launcher, '/');

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		if (!strcmp(slash ? slash + 1 : launcher, sets[i].launcher) &&
		    !strncmp(variable, sets[i].prefix, strlen(sets[i].prefix)))
			return true;
	return false;
}

/* Of the rank and its job: where the container is to have them by name. */
static void put_variables(struct gt_buf *out, char *const *argv, const struct runtime *runtime,
			  const struct gt_container_setup *setup)
{
	for (size_t i = 0; runtime->pass && gt_job_variables[i]; i++) {
		if (!setup->lookup(gt_job_variables[i]) && !is_set_by(argv[0], gt_job_variables[i]))
			continue;
		put_word(out, runtime->pass);
		put_word(out, gt_job_variables[i]);
	}
}

/* The option of Pyxis, with what the user mounts (NULL: nothing) and what we do. */
static void put_list(struct gt_buf *out, const char *option, const char *given,
		     const struct gt_buf *list)
{
	struct gt_buf text = { 0 };

	gt_buf_printf(&text, "%s=%s%s", option, given ? given : "", given ? "," : "");
	gt_buf_append(&text, list->data, list->len);
	gt_buf_byte(&text, '\0');
	if (text.failed)
		out->failed = true;
	else
		put_word(out, text.data);
	gt_buf_release(&text);
}

/* The user's own options, and that one. */
static void put_list_options(struct gt_buf *out, char *const *argv, const struct parts *parts,
			     const struct gt_buf *list)
{
	const char *option = parts->runtime->mount, *given;
	size_t len = strlen(option);
	bool joined = false;

	for (size_t i = parts->options; i < parts->command; i++) {
		given = NULL;
		if (!strncmp(argv[i], option, len) && argv[i][len] == '=')
			given = argv[i] + len + 1;
		else if (!strcmp(argv[i], option) && i + 1 < parts->command)
			given = argv[++i];
		if (given)
			put_list(out, option, given, list);
		else
			put_word(out, argv[i]);
		joined |= given != NULL;
	}
	if (!joined)
		put_list(out, option, NULL, list);
}

static bool limits_memory(const char *word)
{
	return !strcmp(word, "-m") || !strncmp(word, "--memory", strlen("--memory"));
}

/*
 * The program that the option at *i makes the container's, where it is that one: it would be given
 * gtrace for an argument. NULL: it is another option. *i comes to its last word.
 */
static const char *take_entrypoint(char *const *argv, const struct parts *parts, size_t *i)
{
	static const char option[] = "--entrypoint";
	const char *word = argv[*i];

	if (strncmp(word, option, strlen(option)))
		return NULL;
	if (word[strlen(option)] == '=')
		return word + strlen(option) + 1;
	return !word[strlen(option)] && *i + 1 < parts->command ? argv[++*i] : NULL;
}

/* The user's own options, but for that one. Returns the program that it names, or "". */
static const char *put_options(struct gt_buf *out, char *const *argv, const struct parts *parts,
			       bool *ret_limited)
{
	const char *entrypoint = "", *program;

	for (size_t i = parts->options; i < parts->command; i++) {
		program = take_entrypoint(argv, parts, &i);
		if (program) {
			entrypoint = program;
			put_word(out, "--entrypoint");
			put_word(out, "");
			continue;
		}
		put_word(out, argv[i]);
		*ret_limited |= limits_memory(argv[i]);
	}
	return entrypoint;
}

int gt_container_command(char *const *argv, const struct gt_container_setup *setup,
			 struct gt_buf *out, struct gt_buf *missing, bool *ret_limited)
{
	struct gt_buf mounts = { 0 };
	const char *entrypoint = "";
	struct parts parts;

	if (!parse(argv, &parts))
		return -EINVAL;
	put_mounts(&mounts, parts.runtime, setup);
	*ret_limited = false;
	for (size_t i = 0; i < parts.options; i++)
		put_word(out, argv[i]);
	if (is_list(parts.runtime)) {
		put_list_options(out, argv, &parts, &mounts);
	} else {
		if (parts.enters)
			gt_buf_append(missing, mounts.data, mounts.len);
		else
			gt_buf_printf(out, " %.*s", (int)mounts.len, mounts.data);
		put_variables(out, argv, parts.runtime, setup);
		entrypoint = put_options(out, argv, &parts, ret_limited);
	}
	put_word(out, INSIDE "/bin/gtrace");
	put_word(out, "run");
	for (size_t i = 0; i < setup->option_count; i++)
		put_word(out, setup->options[i]);
	if (setup->rendezvous)
		gt_buf_text(out, " --rendezvous " RENDEZVOUS);
	gt_buf_text(out, " -o " TRACES " --");
	if (*entrypoint)
		put_word(out, entrypoint);
	for (size_t i = parts.command; argv[i]; i++)
		put_word(out, argv[i]);
	if (!argv[parts.command] && !*entrypoint)
		gt_buf_text(out, " COMMAND");
	out->failed |= mounts.failed | missing->failed;
	gt_buf_release(&mounts);
	return out->failed ? -ENOMEM : 0;
}
