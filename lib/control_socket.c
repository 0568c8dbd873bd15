#include "base.h"
#include "clock.h"
#include "control_socket.h"
#include "env.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEERS_MAX     32   /* at one time; who has asked is kept, the oldest of the others is not */
#define ASK_WITHIN_MS 2000 /* or the connection is closed */
#define SUFFIX        ".session"
#define NAMES_MAX     1000 /* sessions of one pid */

struct gt_control_peer {
	struct gt_control *control;
	struct gt_control_peer *next, **link; /* among those that have not asked */
	int fd;
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned int handles; /* open ones */
};

/* ---- directories ---- */

#define DIRS_MAX 3

struct dirs {
	char path[DIRS_MAX][GT_CONTROL_PATH_MAX];
	size_t count;
};

static void add_dir(struct dirs *dirs, const char *base, const char *name)
{
	int n;

	if (!base || *base != '/')
		return;
	n = snprintf(dirs->path[dirs->count], sizeof(dirs->path[0]), "%s/%s", base, name);
	dirs->count += n > 0 && (size_t)n < sizeof(dirs->path[0]);
}

/*
 * Where sessions are, the best place first. A login may have a directory of its own where another,
 * such as that of a batch job, has none: whoever looks for sessions looks everywhere.
 */
static void find_dirs(char *(*lookup)(const char *name), struct dirs *ret)
{
	const char *given = lookup(GT_ENV_RUNTIME_DIR);
	char own[64], run[64];

	ret->count = 0;
	if (given && *given) {
		add_dir(ret, given, "gtrace");
		return;
	}
	snprintf(own, sizeof(own), "gtrace-%u", (unsigned int)geteuid());
	snprintf(run, sizeof(run), "/run/user/%u", (unsigned int)geteuid());
	add_dir(ret, lookup("XDG_RUNTIME_DIR"), "gtrace");
	if (!ret->count || strncmp(ret->path[0], run, strlen(run)))
		add_dir(ret, run, "gtrace");
	add_dir(ret, "/tmp", own);
}

/* Nobody else can have made it, or put something into it. */
static bool is_private(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IRWXG | S_IRWXO));
}

/* ---- a session ---- */

static void unlink_peer(struct gt_control_peer *peer)
{
	if (!peer->link)
		return;
	*peer->link = peer->next;
	if (peer->next)
		peer->next->link = peer->link;
	peer->link = NULL;
}

static void on_peer_closed(uv_handle_t *handle)
{
	struct gt_control_peer *peer = handle->data;

	if (--peer->handles)
		return;
	close(peer->fd);
	free(peer);
}

static void on_connection(uv_poll_t *poll, int status, int events);

static void close_peer(struct gt_control_peer *peer)
{
	struct gt_control *control = peer->control;

	unlink_peer(peer);
	if (control->peer_count-- == PEERS_MAX && control->listen_fd >= 0)
		uv_poll_start(&control->listen_poll, UV_READABLE, on_connection);
	uv_close((uv_handle_t *)&peer->poll, on_peer_closed);
	uv_close((uv_handle_t *)&peer->timer, on_peer_closed);
}

/* One datagram: 1; 0 when there is none yet; -EBADMSG when it is no text of fields, -EPIPE. */
static int receive(int fd, struct gt_fields *ret)
{
	ssize_t n = recv(fd, ret->text, sizeof(ret->text), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (!n)
		return -EPIPE;
	ret->full = false;
	ret->len = (size_t)n;
	return gt_fields_check(ret) < 0 ? -EBADMSG : 1;
}

static bool has_hung_up(int fd)
{
	char byte;

	return !recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

static void on_peer(uv_poll_t *poll, int status, int events)
{
	struct gt_control_peer *peer = container_of(poll, struct gt_control_peer, poll);
	struct gt_fields question;
	int rc = receive(peer->fd, &question);

	(void)status;
	(void)events;
	if (!rc)
		return;
	/* Who gave up, as gtrace did not get to it, was told that nothing was done. */
	if (rc < 0 || has_hung_up(peer->fd)) {
		close_peer(peer);
		return;
	}
	uv_poll_stop(poll);
	uv_timer_stop(&peer->timer);
	unlink_peer(peer);
	peer->control->asked(peer->control->ctx, peer, &question);
}

static void on_peer_timeout(uv_timer_t *timer)
{
	close_peer(container_of(timer, struct gt_control_peer, timer));
}

static void add_peer(struct gt_control *control, int fd)
{
	struct gt_control_peer *peer = calloc(1, sizeof(*peer)), **last = &control->peers;
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (!peer || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    cred.uid != geteuid() || uv_poll_init(control->listen_poll.loop, &peer->poll, fd) < 0) {
		free(peer);
		close(fd);
		return;
	}
	uv_timer_init(control->listen_poll.loop, &peer->timer);
	peer->control = control;
	peer->fd = fd;
	peer->handles = 2;
	peer->poll.data = peer->timer.data = peer;
	while (*last)
		last = &(*last)->next;
	peer->link = last;
	*last = peer;
	control->peer_count++;
	uv_poll_start(&peer->poll, UV_READABLE, on_peer);
	uv_timer_start(&peer->timer, on_peer_timeout, ASK_WITHIN_MS, 0);
}

/* Drop the oldest one that has nothing to ask. */
static void make_room(struct gt_control *control)
{
	struct gt_control_peer *oldest;

	while (control->peer_count == PEERS_MAX && (oldest = control->peers)) {
		on_peer(&oldest->poll, 0, UV_READABLE); /* its question may just have come */
		if (control->peers == oldest)
			close_peer(oldest);
	}
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct gt_control *control = container_of(poll, struct gt_control, listen_poll);
	int fd;

	(void)status;
	(void)events;
	if (control->peer_count == PEERS_MAX)
		make_room(control);
	if (control->peer_count == PEERS_MAX) { /* all wait for their answer */
		uv_poll_stop(poll);
		return;
	}
	fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		add_peer(control, fd);
}

void gt_control_answer(struct gt_control_peer *peer, const struct gt_fields *answer)
{
	/* Who asked may be gone. */
	if (send(peer->fd, answer->text, answer->len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		shutdown(peer->fd, SHUT_RDWR);
	close_peer(peer);
}

/* Is a session behind it, and not what a killed one left? */
static bool is_alive(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool refused;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	refused = fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 &&
		  errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return !refused;
}

/* PID.session, or PID-2.session where a session of another container has that pid, too. */
static int take_name(struct gt_control *control, const char *dir, const char *temporary)
{
	char again[16] = "";

	for (int number = 2; number <= NAMES_MAX; number++) {
		int n = snprintf(control->path, sizeof(control->path), "%s/%d%s" SUFFIX, dir,
				 (int)getpid(), again);

		if (n < 0 || (size_t)n >= sizeof(control->path))
			return -ENAMETOOLONG;
		if (!is_alive(control->path))
			unlink(control->path);
		if (!link(temporary, control->path))
			return 0;
		if (errno != EEXIST) /* a file system without links */
			return rename(temporary, control->path) < 0 ? -errno : 0;
		snprintf(again, sizeof(again), "-%d", number);
	}
	return -EEXIST;
}

/* It has its name when it can be connected to: one that cannot is a dead session's. */
static int listen_in(struct gt_control *control, const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, n, rc = 0;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (!is_private(dir))
		return -EPERM;
	n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/.%d-%llx", dir, (int)getpid(),
		     (unsigned long long)gt_clock_ns(CLOCK_REALTIME));
	if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, SOMAXCONN) < 0)
		rc = -errno;
	if (!rc)
		rc = take_name(control, dir, addr.sun_path);
	unlink(addr.sun_path);
	if (rc < 0)
		close(fd);
	return rc ? rc : fd;
}

int gt_control_open(struct gt_control *control, uv_loop_t *loop, char *(*lookup)(const char *name),
		    struct gt_err *err)
{
	struct dirs dirs;
	int fd = -EINVAL, rc;

	control->listen_fd = -1;
	control->peers = NULL;
	control->peer_count = 0;
	find_dirs(lookup, &dirs);
	for (size_t i = 0; i < dirs.count && fd < 0; i++)
		fd = listen_in(control, dirs.path[i]);
	if (!dirs.count)
		return gt_err_set(err, fd,
				  GT_ENV_RUNTIME_DIR
				  " is no absolute path, or longer than a socket's can be");
	if (fd < 0)
		return gt_err_sys(err, fd, "cannot listen in a private directory '%s'",
				  dirs.path[dirs.count - 1]);
	rc = uv_poll_init(loop, &control->listen_poll, fd);
	if (rc < 0) {
		unlink(control->path);
		close(fd);
		return gt_err_sys(err, rc, "cannot watch the control socket");
	}
	control->listen_fd = fd;
	uv_poll_start(&control->listen_poll, UV_READABLE, on_connection);
	return 0;
}

static void on_listen_closed(uv_handle_t *handle)
{
	(void)handle;
}

void gt_control_close(struct gt_control *control)
{
	int fd = control->listen_fd;

	if (fd < 0)
		return;
	control->listen_fd = -1;
	while (control->peers)
		close_peer(control->peers);
	unlink(control->path);
	uv_close((uv_handle_t *)&control->listen_poll, on_listen_closed);
	close(fd);
}

/* ---- one that asks ---- */

static int wait_for_answer(int fd, uint64_t timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t now_ms = gt_clock_ms(CLOCK_MONOTONIC), end_ms = now_ms + timeout_ms;
	int rc;

	for (; now_ms < end_ms; now_ms = gt_clock_ms(CLOCK_MONOTONIC)) {
		rc = poll(&pfd, 1, (int)(end_ms - now_ms));
		if (rc > 0)
			return 0;
		if (rc < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

int gt_control_ask(const char *path, const struct gt_fields *question, uint64_t timeout_ms,
		   struct gt_fields *ret, struct gt_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, rc = 0;

	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path) >=
	    sizeof(addr.sun_path))
		return gt_err_sys(err, -ENAMETOOLONG, "cannot ask '%s'", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return gt_err_sys(err, -errno, "cannot ask '%s'", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    send(fd, question->text, question->len, MSG_NOSIGNAL) < 0)
		rc = -errno;
	if (!rc)
		rc = wait_for_answer(fd, timeout_ms);
	if (!rc)
		rc = receive(fd, ret);
	close(fd);
	return rc < 0 ? gt_err_sys(err, rc, "no answer from '%s'", path) : 0;
}

static int each_in(const char *dir, int (*found)(void *ctx, const char *path), void *ctx)
{
	size_t len, suffix = strlen(SUFFIX);
	char path[GT_CONTROL_PATH_MAX];
	struct dirent *entry;
	DIR *stream;
	int n, rc = 0;

	if (!is_private(dir))
		return 0;
	stream = opendir(dir);
	while (stream && !rc && (entry = readdir(stream))) {
		len = strlen(entry->d_name);
		if (len <= suffix || strcmp(entry->d_name + len - suffix, SUFFIX))
			continue;
		n = snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (n > 0 && (size_t)n < sizeof(path))
			rc = found(ctx, path);
	}
	if (stream)
		closedir(stream);
	return rc;
}

int gt_control_each(char *(*lookup)(const char *name), int (*found)(void *ctx, const char *path),
		    void *ctx)
{
	struct dirs dirs;
	int rc = 0;

	find_dirs(lookup, &dirs);
	for (size_t i = 0; i < dirs.count && !rc; i++)
		rc = each_in(dirs.path[i], found, ctx);
	return rc;
}
