#include "base.h"
#include "claim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX       (1 << 20) /* bytes of a claim that are read: more than 100000 ranks */
#define DECIDE_TRIES   1000      /* 10 s: whoever decides longer than that is stopped */
#define DECIDE_WAIT_NS (10 * GT_NSEC_PER_MSEC)

/* The bytes that are locked. */
enum { DECIDING, HELD };

/* Open file description locks: of this run alone, and gone when it ends. */
static int lock(const struct gt_claim *claim, short type, off_t byte)
{
	struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	if (!claim->locks)
		return 0;
	return fcntl(claim->fd, F_OFD_SETLK, &range) < 0 ? -errno : 0;
}

/* Does another run hold the claim? */
static bool is_held(const struct gt_claim *claim)
{
	struct flock range = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = HELD, .l_len = 1
	};

	return claim->locks && !fcntl(claim->fd, F_OFD_GETLK, &range) && range.l_type != F_UNLCK;
}

/* Be the only one to decide: 0, -EAGAIN when another one does for too long, or -errno. */
static int lock_decision(struct gt_claim *claim)
{
	const struct timespec pause = { .tv_nsec = DECIDE_WAIT_NS };
	int rc, i;

	for (i = 0; i < DECIDE_TRIES; i++) {
		rc = lock(claim, F_WRLCK, DECIDING);
		if (rc == -ENOLCK || rc == -EOPNOTSUPP || rc == -ENOSYS || rc == -EINVAL) {
			/* Some network file systems have none. */
			claim->locks = false;
			rc = 0;
		}
		if (rc != -EAGAIN && rc != -EACCES && rc != -EINTR)
			break;
		nanosleep(&pause, NULL);
	}
	claim->deciding = !rc;
	return rc == -EACCES ? -EAGAIN : rc;
}

/* Is the open file still that of the path, and not one that its last holder removed? */
static bool is_current(const struct gt_claim *claim)
{
	struct stat by_fd, by_path;

	return !fstat(claim->fd, &by_fd) && !stat(claim->path, &by_path) &&
	       by_fd.st_ino == by_path.st_ino && by_fd.st_dev == by_path.st_dev;
}

/* -EAGAIN: others have it. */
static int open_file(struct gt_claim *claim)
{
	struct stat st;
	int rc;

	for (;;) {
		claim->fd = open(claim->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		rc = claim->fd < 0 ? -errno : 0;
		if (rc == -EACCES && !lstat(claim->path, &st))
			return -EAGAIN; /* another user's */
		if (rc < 0)
			return rc;
		rc = lock_decision(claim);
		if (rc < 0 || is_current(claim))
			return rc;
		close(claim->fd);
	}
}

/* The file, with a NUL; NULL: out of memory or unreadable. */
static char *read_text(const struct gt_claim *claim)
{
	char *text = calloc(1, TEXT_MAX + 1);
	ssize_t n = text ? pread(claim->fd, text, TEXT_MAX, 0) : -1;

	if (n >= 0)
		return text;
	free(text);
	return NULL;
}

/* The ranks in it, a line each, when it is of this job; else NULL. */
static const char *find_ranks(const struct gt_claim *claim, const char *text)
{
	const char *key = claim->job->key;
	size_t len = strlen(key);

	return len && !strncmp(text, key, len) && text[len] == '\n' ? text + len + 1 : NULL;
}

static uint64_t count_ranks(const char *ranks)
{
	uint64_t count = 0;

	for (; (ranks = strchr(ranks, '\n')); ranks++)
		count++;
	return count;
}

static bool has_rank(const char *ranks, uint32_t rank)
{
	char line[16];
	int len = snprintf(line, sizeof(line), "%u\n", rank);

	for (; ranks && *ranks; ranks = strchr(ranks, '\n'), ranks += ranks != NULL)
		if (!strncmp(ranks, line, (size_t)len))
			return true;
	return false;
}

/* As gt_claim_open(). */
static int judge(struct gt_claim *claim)
{
	bool held = is_held(claim);
	char *text = read_text(claim);
	const char *ranks;

	if (!text)
		return -EIO;
	ranks = find_ranks(claim, text);
	/* A rank may come when others have ended; but that can also be an earlier job's claim. */
	claim->joined = ranks && (held || claim->job->unique || !claim->locks) &&
			!has_rank(ranks, claim->job->rank.rank);
	free(text);
	return claim->joined || !held;
}

static void forget(struct gt_claim *claim)
{
	if (claim->fd >= 0)
		close(claim->fd);
	free(claim->path);
	*claim = (struct gt_claim){ .fd = -1 };
}

int gt_claim_open(struct gt_claim *claim, const char *path, const struct gt_job *job)
{
	int rc;

	*claim = (struct gt_claim){ .fd = -1, .path = strdup(path), .job = job, .locks = true };
	rc = claim->path ? open_file(claim) : -ENOMEM;
	if (!rc)
		rc = judge(claim);
	if (rc <= 0)
		forget(claim);
	return rc == -EAGAIN ? 0 : rc;
}

int gt_claim_hold(struct gt_claim *claim)
{
	const struct gt_job *job = claim->job;
	char text[sizeof(job->key) + 16];
	off_t end = claim->joined ? lseek(claim->fd, 0, SEEK_END) : 0;
	int len = 0, rc;

	rc = lock(claim, F_RDLCK, HELD);
	if (!rc && !claim->joined && ftruncate(claim->fd, 0) < 0)
		rc = -errno;
	if (*job->key)
		len = snprintf(text, sizeof(text), "%s%s%u\n", claim->joined ? "" : job->key,
			       claim->joined ? "" : "\n", job->rank.rank);
	if (!rc && pwrite(claim->fd, text, (size_t)len, end) != len)
		rc = -ENOSPC;
	lock(claim, F_UNLCK, DECIDING);
	claim->deciding = false;
	return rc;
}

/* Have all come that share the claim? */
static bool is_complete(const struct gt_claim *claim)
{
	const char *ranks;
	bool complete;
	char *text;

	if (!*claim->job->key)
		return true;
	text = read_text(claim);
	ranks = text ? find_ranks(claim, text) : NULL;
	complete = ranks && claim->job->rank.world_size &&
		   count_ranks(ranks) >= claim->job->rank.world_size;
	free(text);
	return complete;
}

void gt_claim_close(struct gt_claim *claim)
{
	bool held = !claim->deciding;

	if (claim->fd < 0)
		return;
	if (held)
		lock(claim, F_UNLCK, HELD);
	if ((claim->deciding || !lock_decision(claim)) && !is_held(claim) &&
	    (!held || is_complete(claim)))
		unlink(claim->path);
	forget(claim);
}
