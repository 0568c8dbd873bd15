#include "base.h"
#include "claim.h"
#include "clock.h"
#include "session.h"
#include "str.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX        ".trace.json.gz"
#define TB_SUFFIX     ".pt.trace.json.gz"
#define PROBE_BYTES   65536 /* a directory without room for this takes no trace */
#define NAME_ATTEMPTS 100000

struct owner { /* who has a name; each rank's first one has the plain name */
	uint32_t rank, pid;
	uint64_t client;
};

struct gt_session {
	char *dir;
	char name[GT_SESSION_NAME_MAX + 16];
	char host[GT_SESSION_HOST_MAX + 1]; /* empty: names are not TensorBoard's */
	bool folder_made;                   /* of that name, by this session */
	bool cycles;
	bool force;
	struct gt_job job;
	struct gt_claim claim; /* of the name */
	pthread_mutex_t lock;  /* of what is below */
	struct owner *owners;  /* in the order in which they came */
	size_t owner_count;
	uint64_t last_ms; /* of the last file's name, in a folder */
};

int gt_session_check_name(const char *name, struct gt_err *err)
{
	const char *c;

	if (!*name || *name == '.' || strlen(name) > GT_SESSION_NAME_MAX)
		return gt_err_set(err, -EINVAL,
				  "a name has 1 to %d bytes and does not begin with a dot",
				  GT_SESSION_NAME_MAX);
	for (c = name; *c; c++)
		if (*c == '/' || (unsigned char)*c < ' ' || *c == 0x7f)
			return gt_err_set(err, -EINVAL,
					  "a name has no slash and no control characters");
	return 0;
}

/* Is file a trace of this name? */
static bool is_trace_of(const char *file, const char *name)
{
	size_t name_len = strlen(name), len = strlen(file), suffix_len = strlen(SUFFIX);

	if (strncmp(file, name, name_len) || strncmp(file + name_len, "-rank", 5) ||
	    len < suffix_len || strcmp(file + len - suffix_len, SUFFIX))
		return false;
	file += name_len + 5;
	len = strspn(file, "0123456789");
	return len && (file[len] == '-' || file[len] == '.');
}

static bool in_folder(const struct gt_session *session)
{
	return *session->host;
}

/* The caller's; NULL without memory. */
static char *folder_path(const struct gt_session *session)
{
	char *path;

	return asprintf(&path, "%s/%s", session->dir, session->name) < 0 ? NULL : path;
}

/* Of this name: 1, 0 or -errno. */
static int has_traces(const struct gt_session *session)
{
	bool folder = in_folder(session);
	char *path = folder ? folder_path(session) : NULL;
	struct dirent *entry;
	int found = 0;
	DIR *stream;

	if (folder && !path)
		return -ENOMEM;
	stream = opendir(folder ? path : session->dir);
	free(path);
	if (!stream && folder && (errno == ENOENT || errno == ENOTDIR))
		return errno == ENOTDIR;
	if (!stream)
		return -errno;
	while (!found && (entry = readdir(stream)))
		found = folder ? gt_text_ends(entry->d_name, TB_SUFFIX)
			       : is_trace_of(entry->d_name, session->name);
	closedir(stream);
	return found;
}

/* Can --force overwrite each trace of this name? 0 or -errno. */
static int check_overwrites(const struct gt_session *session, struct gt_err *err)
{
	DIR *stream = opendir(session->dir);
	struct dirent *entry;
	struct stat st;
	int rc = 0;

	if (!stream)
		return gt_err_sys(err, -errno, "cannot read '%s'", session->dir);
	while (!rc && (entry = readdir(stream))) {
		if (!is_trace_of(entry->d_name, session->name) ||
		    fstatat(dirfd(stream), entry->d_name, &st, 0) < 0)
			continue;
		if (!S_ISREG(st.st_mode))
			rc = gt_err_set(err, -EEXIST, "cannot overwrite '%s/%s': it is no file",
					session->dir, entry->d_name);
		else if (faccessat(dirfd(stream), entry->d_name, W_OK, AT_EACCESS) < 0)
			rc = gt_err_sys(err, -errno, "cannot overwrite '%s/%s'", session->dir,
					entry->d_name);
	}
	closedir(stream);
	return rc;
}

static int make_folder(struct gt_session *session)
{
	char *path = folder_path(session);
	struct stat st;
	int rc;

	if (!path)
		return -ENOMEM;
	rc = mkdir(path, 0777) < 0 ? -errno : 0;
	session->folder_made = !rc;
	/* of another gtrace of the job, or from before */
	if (rc == -EEXIST && !stat(path, &st))
		rc = S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	free(path);
	return rc;
}

/* When nothing was written to it, and no other gtrace is to. */
static void drop_folder(const struct gt_session *session)
{
	char *path = session->folder_made && !*session->job.key ? folder_path(session) : NULL;

	if (path)
		rmdir(path);
	free(path);
}

/* Does the file system take data? */
static int probe(int fd, const char *dir, struct gt_err *err)
{
	static const char zeros[PROBE_BYTES];
	off_t end = lseek(fd, 0, SEEK_END); /* behind what a claim says */
	struct rlimit size;
	ssize_t n;
	int rc;

	/* To write beyond this limit is deadly. */
	if (!getrlimit(RLIMIT_FSIZE, &size) && size.rlim_cur < (rlim_t)end + sizeof(zeros))
		return gt_err_sys(err, -EFBIG, "cannot write to '%s' ('ulimit -f')", dir);
	n = pwrite(fd, zeros, sizeof(zeros), end);
	rc = n < 0 ? -errno : n < (ssize_t)sizeof(zeros) ? -ENOSPC : 0;

	if (!rc && ftruncate(fd, end) < 0)
		rc = -errno;
	if (rc)
		return gt_err_sys(err, rc, "cannot write to '%s'", dir);
	return 0;
}

/* Take session->name, when it is free: 1; 0 when it is not; -errno. */
static int take_name(struct gt_session *session, const struct gt_session_config *config,
		     struct gt_err *err)
{
	struct gt_claim *claim = &session->claim;
	char *path;
	int rc, found;

	if (asprintf(&path, "%s/.%s.gtrace", session->dir, session->name) < 0)
		return gt_err_sys(err, -ENOMEM, "cannot open '%s'", session->dir);
	rc = gt_claim_open(claim, path, &session->job);
	free(path);
	if (rc < 0)
		return gt_err_sys(err, rc, "cannot write to '%s'", session->dir);
	if (!rc)
		return 0;
	found = config->force || claim->joined ? 0 : has_traces(session);
	if (found < 0)
		return gt_err_sys(err, found, "cannot read '%s'", session->dir);
	if (found) {
		gt_claim_close(claim);
		return 0;
	}
	rc = config->force && !in_folder(session) ? check_overwrites(session, err) : 0;
	if (!rc)
		rc = probe(claim->fd, session->dir, err);
	if (rc < 0)
		return rc;
	rc = gt_claim_hold(claim);
	if (rc < 0)
		return gt_err_sys(err, rc, "cannot write to '%s'", session->dir);
	rc = in_folder(session) ? make_folder(session) : 0;
	if (rc < 0)
		return gt_err_sys(err, rc, "cannot make '%s/%s'", session->dir, session->name);
	return 1;
}

/* No name of a machine has a slash, but a name that somebody gave it may. */
static void set_host(struct gt_session *session, const char *host)
{
	snprintf(session->host, sizeof(session->host), "%s", *host ? host : "localhost");
	for (char *c = session->host; *c; c++)
		if (*c == '/')
			*c = '_';
}

int gt_session_open(struct gt_session **ret, const struct gt_session_config *config,
		    struct gt_err *err)
{
	struct gt_session *session = calloc(1, sizeof(*session));
	int rc, attempt = 1;

	if (session)
		session->dir = strdup(config->dir);
	if (!session || !session->dir) {
		free(session);
		return gt_err_sys(err, -ENOMEM, "cannot open '%s'", config->dir);
	}
	pthread_mutex_init(&session->lock, NULL);
	session->claim.fd = -1;
	session->job = config->job;
	session->cycles = config->cycles;
	session->force = config->force;
	if (config->tensorboard_host)
		set_host(session, config->tensorboard_host);
	snprintf(session->name, sizeof(session->name), "%s", config->name);
	while (!(rc = take_name(session, config, err)) && ++attempt <= NAME_ATTEMPTS)
		snprintf(session->name, sizeof(session->name), "%.*s-%d", GT_SESSION_NAME_MAX,
			 config->name, attempt);
	if (!rc)
		rc = gt_err_set(err, -EEXIST, "'%s' has too many traces named '%s'", config->dir,
				config->name);
	if (rc < 0) {
		gt_session_free(session);
		return rc;
	}
	*ret = session;
	return 0;
}

const char *gt_session_advice(int code)
{
	switch (code) {
	case -EROFS:
		return "choose one that can be written with --output-dir; in a container mount "
		       "one, as "
		       "with -v $PWD:/traces";
	case -EACCES:
	case -EPERM:
		/* Root is refused by network file systems, and where it is not root. */
		return geteuid()
			       ? "choose another directory with --output-dir"
			       : "root is nobody on this file system (root_squash): run as the "
				 "owner "
				 "of the directory, or choose another directory with --output-dir";
	case -EEXIST:
		return "choose another name with --name";
	case -EFBIG:
		return "raise that limit";
	case -ENOSPC:
	case -EDQUOT:
		return "make room or choose another directory with --output-dir";
	default:
		return "create it or choose another directory with --output-dir";
	}
}

const char *gt_session_name(const struct gt_session *session)
{
	return session->name;
}

/*
 * Which name client has: 0: the plain one of its rank, 1: that with its pid, N: that with its pid
 * and N, since a process that executes another program keeps its pid; -ENOMEM.
 */
static int take_name_of(struct gt_session *session, uint32_t rank, uint32_t pid, uint64_t client)
{
	struct owner *owners;
	bool first = true;
	int same_pid = 0;
	size_t i;

	for (i = 0; i < session->owner_count; i++) {
		const struct owner *owner = &session->owners[i];

		if (owner->rank != rank)
			continue;
		if (!first && owner->pid == pid)
			same_pid++;
		if (owner->client == client)
			return first ? 0 : same_pid;
		first = false;
	}
	owners = realloc(session->owners, (session->owner_count + 1) * sizeof(*owners));
	if (!owners)
		return -ENOMEM;
	owners[session->owner_count++] =
		(struct owner){ .rank = rank, .pid = pid, .client = client };
	session->owners = owners;
	return first ? 0 : same_pid + 1;
}

static bool is_taken(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* The time in ms, a little later where a file of this session has that one. */
static uint64_t take_ms(struct gt_session *session)
{
	uint64_t now_ms = gt_clock_ms(CLOCK_REALTIME);

	session->last_ms = GT_MAX(now_ms, session->last_ms + 1);
	return session->last_ms;
}

/*
 * The processes of this session are told apart by owner and pid, those of others by number. In a
 * folder cycle is the time.
 */
static int format_path(const struct gt_session *session, bool owner, uint32_t rank, uint32_t pid,
		       uint64_t cycle, unsigned int number, char *buf, size_t len)
{
	char cycle_part[32] = "", pid_part[24] = "", number_part[16] = "";
	int n;

	if (in_folder(session))
		snprintf(cycle_part, sizeof(cycle_part), ".%llu", (unsigned long long)cycle);
	else if (session->cycles || cycle > 1)
		snprintf(cycle_part, sizeof(cycle_part), "-cycle%llu", (unsigned long long)cycle);
	if (!owner)
		snprintf(pid_part, sizeof(pid_part), "-pid%u", pid);
	if (number)
		snprintf(number_part, sizeof(number_part), "-%u", number);
	if (in_folder(session))
		n = snprintf(buf, len, "%s/%s/%s_rank%u%s%s%s" TB_SUFFIX, session->dir,
			     session->name, session->host, rank, pid_part, number_part, cycle_part);
	else
		n = snprintf(buf, len, "%s/%s-rank%u%s%s%s" SUFFIX, session->dir, session->name,
			     rank, cycle_part, pid_part, number_part);
	return n >= 0 && (size_t)n < len ? 0 : -ENAMETOOLONG;
}

int gt_session_path(struct gt_session *session, uint64_t client, uint32_t rank, uint32_t pid,
		    uint64_t cycle, char *buf, size_t len, bool *overwrite, struct gt_err *err)
{
	unsigned int number;
	int which;

	pthread_mutex_lock(&session->lock);
	which = take_name_of(session, rank, pid, client);
	if (in_folder(session))
		cycle = take_ms(session);
	pthread_mutex_unlock(&session->lock);
	if (which < 0)
		return gt_err_sys(err, which, "cannot name a trace of rank %u", rank);
	*overwrite = session->force;
	number = which > 1 ? (unsigned int)which : 0;
	do {
		if (format_path(session, !which, rank, pid, cycle, number, buf, len) < 0)
			return gt_err_set(err, -ENAMETOOLONG,
					  "the path of a trace in '%s' is too long", session->dir);
		/* Others of the job may have it, or a file that came since the name was chosen. */
		number = which ? GT_MAX(number, 1u) + 1 : 0;
		which = 1;
	} while (!session->force && is_taken(buf));
	return 0;
}

void gt_session_free(struct gt_session *session)
{
	if (!session)
		return;
	drop_folder(session);
	gt_claim_close(&session->claim);
	pthread_mutex_destroy(&session->lock);
	free(session->owners);
	free(session->dir);
	free(session);
}
