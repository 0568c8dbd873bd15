#include "base.h"
#include "session.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX        ".trace.json.gz"
#define PROBE_BYTES   65536 /* a directory without room for this takes no trace */
#define NAME_ATTEMPTS 100000

struct owner { /* who has the plain name of a rank */
	uint32_t rank;
	uint64_t client;
};

struct gt_session {
	char *dir;
	char name[GT_SESSION_NAME_MAX + 16];
	bool cycles;
	char *lock_path;
	int lock_fd;
	pthread_mutex_t lock; /* of what is below */
	struct owner *owners;
	size_t owner_count;
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

/* Is file a trace of this name (of this rank, when there is one)? */
static bool is_trace_of(const char *file, const char *name, const struct gt_rank *rank)
{
	size_t name_len = strlen(name), len = strlen(file), suffix_len = strlen(SUFFIX);
	unsigned long file_rank;
	char *end;

	if (strncmp(file, name, name_len) || strncmp(file + name_len, "-rank", 5) ||
	    len < suffix_len || strcmp(file + len - suffix_len, SUFFIX))
		return false;
	file += name_len + 5;
	if (*file < '0' || *file > '9')
		return false;
	file_rank = strtoul(file, &end, 10);
	if (*end != '-' && *end != '.')
		return false;
	return rank->source == GT_RANK_NONE || file_rank == rank->rank;
}

/* 1, 0 or -errno */
static int has_traces(const char *dir, const char *name, const struct gt_rank *rank)
{
	struct dirent *entry;
	DIR *stream = opendir(dir);
	int found = 0;

	if (!stream)
		return -errno;
	while (!found && (entry = readdir(stream)))
		found = is_trace_of(entry->d_name, name, rank);
	closedir(stream);
	return found;
}

/*
 * Hold path against other runs. The file remains when a run is killed, the lock on it does not.
 * The descriptor, -EWOULDBLOCK when another run holds it, or another -errno.
 */
static int hold(const char *path)
{
	struct stat by_fd, by_path;
	int fd, rc;

	for (;;) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		rc = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		/* Some network file systems have no locks: names are then only as good as O_EXCL.
		 */
		if (rc == -ENOLCK || rc == -EOPNOTSUPP || rc == -ENOSYS)
			return fd;
		if (!rc && !fstat(fd, &by_fd) && !stat(path, &by_path) &&
		    by_fd.st_ino == by_path.st_ino && by_fd.st_dev == by_path.st_dev)
			return fd;
		close(fd);
		if (rc)
			return rc;
		/* Its holder removed it between our open and our lock. */
	}
}

/* Does the file system take data? */
static int probe(int fd, const char *dir, struct gt_err *err)
{
	static const char zeros[PROBE_BYTES];
	struct rlimit size;
	ssize_t n;
	int rc;

	/* To write beyond this limit is deadly. */
	if (!getrlimit(RLIMIT_FSIZE, &size) && size.rlim_cur < sizeof(zeros))
		return gt_err_sys(err, -EFBIG, "cannot write to '%s' ('ulimit -f')", dir);
	n = pwrite(fd, zeros, sizeof(zeros), 0);
	rc = n < 0 ? -errno : n < (ssize_t)sizeof(zeros) ? -ENOSPC : 0;

	if (!rc && ftruncate(fd, 0) < 0)
		rc = -errno;
	if (rc)
		return gt_err_sys(err, rc, "cannot write to '%s'", dir);
	return 0;
}

/* Take session->name, when it is free: 1; 0 when it is not; -errno. */
static int take_name(struct gt_session *session, const struct gt_session_config *config,
		     struct gt_err *err)
{
	char rank[24] = "";
	int rc;

	if (config->rank.source != GT_RANK_NONE)
		snprintf(rank, sizeof(rank), "-rank%u", config->rank.rank);
	if (asprintf(&session->lock_path, "%s/.%s%s.gtrace", session->dir, session->name, rank) <
	    0) {
		session->lock_path = NULL;
		return gt_err_sys(err, -ENOMEM, "cannot open '%s'", session->dir);
	}
	session->lock_fd = hold(session->lock_path);
	if (session->lock_fd >= 0) {
		rc = config->force ? 0 : has_traces(session->dir, session->name, &config->rank);
		if (rc < 0)
			return gt_err_sys(err, rc, "cannot read '%s'", session->dir);
		if (!rc)
			return 1;
		unlink(session->lock_path);
		close(session->lock_fd);
	} else if (session->lock_fd != -EWOULDBLOCK) {
		rc = session->lock_fd;
		session->lock_fd = -1;
		return gt_err_sys(err, rc, "cannot write to '%s'", session->dir);
	}
	session->lock_fd = -1;
	free(session->lock_path);
	session->lock_path = NULL;
	return 0;
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
	session->lock_fd = -1;
	session->cycles = config->cycles;
	snprintf(session->name, sizeof(session->name), "%s", config->name);
	while (!(rc = take_name(session, config, err)) && ++attempt <= NAME_ATTEMPTS)
		snprintf(session->name, sizeof(session->name), "%.*s-%d", GT_SESSION_NAME_MAX,
			 config->name, attempt);
	if (!rc)
		rc = gt_err_set(err, -EEXIST, "'%s' has too many traces named '%s'", config->dir,
				config->name);
	if (rc > 0)
		rc = probe(session->lock_fd, config->dir, err);
	if (rc < 0) {
		gt_session_free(session);
		return rc;
	}
	*ret = session;
	return 0;
}

const char *gt_session_name(const struct gt_session *session)
{
	return session->name;
}

/* 1: client has the plain name of rank; 0: another one has it; -ENOMEM. */
static int owns_rank(struct gt_session *session, uint32_t rank, uint64_t client)
{
	struct owner *owners;
	size_t i;

	for (i = 0; i < session->owner_count; i++)
		if (session->owners[i].rank == rank)
			return session->owners[i].client == client;
	owners = realloc(session->owners, (session->owner_count + 1) * sizeof(*owners));
	if (!owners)
		return -ENOMEM;
	owners[session->owner_count++] = (struct owner){ .rank = rank, .client = client };
	session->owners = owners;
	return 1;
}

int gt_session_path(struct gt_session *session, uint64_t client, uint32_t rank, uint32_t pid,
		    uint64_t cycle, char *buf, size_t len, struct gt_err *err)
{
	char cycle_part[32] = "", pid_part[24] = "";
	int n, owner;

	pthread_mutex_lock(&session->lock);
	owner = owns_rank(session, rank, client);
	pthread_mutex_unlock(&session->lock);
	if (owner < 0)
		return gt_err_sys(err, owner, "cannot name a trace of rank %u", rank);
	if (session->cycles)
		snprintf(cycle_part, sizeof(cycle_part), "-cycle%llu", (unsigned long long)cycle);
	if (!owner)
		snprintf(pid_part, sizeof(pid_part), "-pid%u", pid);
	n = snprintf(buf, len, "%s/%s-rank%u%s%s" SUFFIX, session->dir, session->name, rank,
		     cycle_part, pid_part);
	if (n < 0 || (size_t)n >= len)
		return gt_err_set(err, -ENAMETOOLONG, "the path of a trace in '%s' is too long",
				  session->dir);
	return 0;
}

void gt_session_free(struct gt_session *session)
{
	if (!session)
		return;
	if (session->lock_fd >= 0) {
		unlink(session->lock_path);
		close(session->lock_fd);
	}
	free(session->lock_path);
	pthread_mutex_destroy(&session->lock);
	free(session->owners);
	free(session->dir);
	free(session);
}
