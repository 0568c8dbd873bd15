#include "base.h"
#include "collector.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX   1024
#define ACCEPTS_MAX   64 /* at a time; clients are waiting */
#define BUSY_EVERY_MS 10 /* how often arenas are read while a window is open */
#define IDLE_EVERY_MS 100
/* And just after its end: until its last records are read the program pays for being traced. */
#define CLOSING_EVERY_MS 3

/* Does it have a GPU to trace? Launchers and helpers may connect, too. */
static bool is_worker(const struct gt_client_info *info)
{
	return info->gpu_ops || info->step || info->files;
}

static void on_connection(uv_poll_t *poll, int status, int events);

/* How soon the arenas are to be read again. */
static uint64_t interval_ms(const struct gt_collector *collector)
{
	uint64_t ms = IDLE_EVERY_MS;

	for (size_t i = 0; i < collector->client_count; i++) {
		const struct gt_client_info *info = gt_client_info(collector->clients[i]);

		if (info->closing)
			return CLOSING_EVERY_MS;
		if (info->open_cycle)
			ms = BUSY_EVERY_MS;
	}
	return ms;
}

static void on_timer(uv_timer_t *timer)
{
	struct gt_collector *collector = container_of(timer, struct gt_collector, timer);
	uint64_t ms = interval_ms(collector);

	/* Backwards: a tick may release the client, and the last one takes its place. */
	for (size_t i = collector->client_count; i-- > 0;)
		gt_client_tick(collector->clients[i]);
	if (uv_timer_get_repeat(timer) != ms)
		uv_timer_start(timer, on_timer, ms, ms);
	if (collector->paused)
		uv_poll_start(&collector->listen_poll, UV_READABLE, on_connection);
	collector->paused = false;
}

/* Its arena fills up, or its end is near, while the timer still is slow. */
static void on_hurry(void *owner)
{
	struct gt_collector *collector = owner;
	uint64_t ms = interval_ms(collector);

	if (uv_timer_get_repeat(&collector->timer) > ms)
		uv_timer_start(&collector->timer, on_timer, ms, ms);
}

static void on_answered(void *owner, struct gt_client *client)
{
	struct gt_collector *collector = owner;

	if (collector->answered)
		collector->answered(collector->ctx, gt_client_info(client));
}

static void on_released(void *owner, struct gt_client *client)
{
	struct gt_collector *collector = owner;
	size_t i;

	for (i = 0; i < collector->client_count; i++)
		if (collector->clients[i] == client)
			break;
	collector->clients[i] = collector->clients[--collector->client_count];
	if (!collector->client_count && collector->idle)
		collector->idle(collector->ctx);
}

static int add_client(struct gt_collector *collector, int fd, const struct ucred *cred,
		      struct gt_err *err)
{
	struct gt_client **clients, *client;
	size_t i;
	int rc;

	if (collector->client_count == CLIENTS_MAX) {
		close(fd);
		return gt_err_set(err, -EMFILE, "process %d is one too many: it is not traced",
				  cred->pid);
	}
	clients = realloc(collector->clients, (collector->client_count + 1) * sizeof(*clients));
	if (!clients) {
		close(fd);
		return gt_err_sys(err, -ENOMEM, "cannot trace process %d", cred->pid);
	}
	collector->clients = clients;
	rc = gt_client_new(&client, ++collector->accepted, collector->timer.loop, fd, cred,
			   &collector->client_config, err);
	if (rc < 0)
		return rc;
	clients[collector->client_count++] = client;
	for (i = collector->client_count - 1; i-- > 0;)
		if (gt_client_pid(collector->clients[i]) == cred->pid)
			gt_client_replaced(collector->clients[i]);
	if (collector->killed_by)
		gt_client_kill(client, collector->killed_by);
	if (collector->stopped_by)
		gt_client_stop(client, collector->stopped_by); /* which may free it */
	return 0;
}

/* Take in one process: 1, 0 when none waits. */
static int accept_one(struct gt_collector *collector)
{
	struct gt_client_info nobody = { .id = 0 };
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;
	struct gt_err err;
	int fd, rc;

	fd = accept4(collector->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
		return errno != EAGAIN;
	if (fd < 0) {
		/* No descriptor or no memory: it goes on waiting, until the next tick. */
		gt_err_sys(&err, -errno, "cannot take in a process");
		if (!collector->accept_failed)
			collector->ops->failed(collector->ctx, &nobody, &err);
		collector->accept_failed = true;
		collector->paused = true;
		uv_poll_stop(&collector->listen_poll);
		return 0;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		rc = gt_err_sys(&err, -errno, "cannot tell who connected");
		close(fd);
	} else {
		rc = add_client(collector, fd, &cred, &err);
	}
	if (rc < 0)
		collector->ops->failed(collector->ctx, &nobody, &err);
	return 1;
}

void gt_collector_accept(struct gt_collector *collector)
{
	int i;

	for (i = 0; i < ACCEPTS_MAX && accept_one(collector); i++)
		;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	gt_collector_accept(container_of(poll, struct gt_collector, listen_poll));
}

int gt_collector_start(struct gt_collector *collector, uv_loop_t *loop, struct gt_err *err)
{
	int rc = uv_poll_init(loop, &collector->listen_poll, collector->listen_fd);

	if (rc < 0)
		return gt_err_sys(err, rc, "cannot watch the socket");
	uv_timer_init(loop, &collector->timer);
	collector->clients = NULL;
	collector->client_count = 0;
	collector->accepted = 0;
	collector->paused = collector->accept_failed = false;
	collector->stopped_by = NULL;
	collector->killed_by = 0;
	collector->client_config = (struct gt_client_config){
		.ops = collector->ops,
		.ctx = collector->ctx,
		.released = on_released,
		.hurry = on_hurry,
		.answered = on_answered,
		.owner = collector,
		.uid = geteuid(),
		.recorder = collector->recorder,
	};
	uv_poll_start(&collector->listen_poll, UV_READABLE, on_connection);
	uv_timer_start(&collector->timer, on_timer, IDLE_EVERY_MS, IDLE_EVERY_MS);
	return 0;
}

void gt_collector_stop(struct gt_collector *collector, const char *by)
{
	size_t i;

	collector->stopped_by = by;
	for (i = collector->client_count; i-- > 0;)
		gt_client_stop(collector->clients[i], by);
}

void gt_collector_kill(struct gt_collector *collector, int sig)
{
	size_t i;

	collector->killed_by = sig;
	for (i = 0; i < collector->client_count; i++)
		gt_client_kill(collector->clients[i], sig);
}

const struct gt_client_info *gt_collector_leader(const struct gt_collector *collector)
{
	const struct gt_client_info *info, *leader = NULL;
	size_t i;

	for (i = 0; i < collector->client_count; i++) {
		info = gt_client_info(collector->clients[i]);
		if (is_worker(info) && (!leader || info->hello.rank < leader->hello.rank))
			leader = info;
	}
	return leader;
}

bool gt_collector_is_complete(const struct gt_collector *collector)
{
	const struct gt_client_info *info;
	bool any = false;
	size_t i;

	for (i = 0; i < collector->client_count; i++) {
		info = gt_client_info(collector->clients[i]);
		if (!gt_client_step(collector->clients[i]) && !info->files)
			continue;
		if (!info->files || info->open_cycle ||
		    (info->phase != GT_PHASE_OVER && !info->bounded))
			return false;
		any = true;
	}
	return any;
}

void gt_collector_close(struct gt_collector *collector)
{
	uv_close((uv_handle_t *)&collector->timer, NULL);
	uv_close((uv_handle_t *)&collector->listen_poll, NULL);
	free(collector->clients);
	collector->clients = NULL;
}
