#include "base.h"
#include "client_priv.h"
#include "clock.h"
#include "message.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELLO_WITHIN_MS 10000 /* a connection without a HELLO is closed after this time */
#define FLUSH_EVERY_MS  100   /* so much of an open window is lost when gtrace is killed */
#define STOP_WITHIN_MS  1000  /* a process that was told to stop is not waited for longer */
#define LOOKS_MAX       8     /* for one drain, of a process that says something all the time */

static void on_socket(uv_poll_t *poll, int status, int events);

/* ---- end ---- */

static void free_when_closed(struct gt_client *client)
{
	if (!client->released || client->handles)
		return;
	if (client->pidfd >= 0)
		close(client->pidfd);
	free(client);
}

static void on_closed(uv_handle_t *handle)
{
	struct gt_client *client = handle->data;

	client->handles--;
	free_when_closed(client);
}

void gt_client_close_socket(struct gt_client *client)
{
	if (client->fd < 0)
		return;
	uv_close((uv_handle_t *)&client->socket_poll, on_closed);
	close(client->fd);
	client->fd = -1;
}

static void release(struct gt_client *client)
{
	gt_client_close_socket(client);
	if (client->pidfd >= 0)
		uv_close((uv_handle_t *)&client->pid_poll, on_closed);
	gt_recorder_free(client->recorder);
	if (!client->info.end)
		client->info.end = client->replaced   ? GT_CLIENT_REPLACED
				   : client->orderly  ? GT_CLIENT_ENDED
				   : client->stopping ? GT_CLIENT_STOPPED
						      : GT_CLIENT_KILLED;
	client->config->ops->gone(client->config->ctx, &client->info);
	client->config->released(client->config->owner, client);
	client->released = true;
	free_when_closed(client);
}

/* ---- drains ---- */

static enum gt_end end_of(const struct gt_client *client)
{
	if (client->orderly)
		return GT_END_ORDERLY;
	return client->replaced ? GT_END_EXEC : GT_END_DIED;
}

static void work(uv_work_t *request)
{
	struct gt_client *client = container_of(request, struct gt_client, work);

	if (client->finishing)
		gt_recorder_finish(client->recorder, end_of(client), gt_clock_ns(CLOCK_REALTIME),
				   &client->report);
	else
		gt_recorder_drain(client->recorder, gt_clock_ns(CLOCK_REALTIME), client->flush_due,
				  &client->report);
}

static void tell_drained(struct gt_client *client)
{
	const struct gt_recorder_report *report = &client->report;

	if (report->drained)
		client->drained_cycles = GT_MAX(client->drained_cycles, report->drained_cycle + 1);
	/* When the socket is full, the next drain tries again. */
	if (client->drained_cycles > client->drained_told && client->fd >= 0 &&
	    !gt_message_send(client->fd, GT_MSG_DRAINED, client->drained_cycles - 1)) {
		client->drained_told = client->drained_cycles;
		gt_recorder_wake(client->recorder);
	}
}

/* A disk that is full stays so for many drains: it is told once. */
static void tell_failure(struct gt_client *client, const struct gt_err *err)
{
	if (!strcmp(client->told_failure, err->msg))
		return;
	memcpy(client->told_failure, err->msg, sizeof(err->msg));
	client->config->ops->failed(client->config->ctx, &client->info, err);
}

static void tell_closed(struct gt_client *client)
{
	const struct gt_recorder_report *report = &client->report;

	for (size_t i = 0; i < report->closed_count; i++) {
		const struct gt_recorder_closed *closed = &report->closed[i];

		if (closed->err.code) {
			client->info.awaited.active = 0; /* for what it lacks is said */
			tell_failure(client, &closed->err);
			continue;
		}
		client->info.files++;
		client->info.bounded |= closed->bounded;
		if (closed->cycle > client->info.awaited.cycle)
			client->info.awaited.active = 0;
		client->config->ops->closed(client->config->ctx, &client->info, closed);
	}
}

static void after_work(uv_work_t *request, int status)
{
	struct gt_client *client = container_of(request, struct gt_client, work);
	const struct gt_client_ops *ops = client->config->ops;
	const struct gt_recorder_report *report = &client->report;
	bool hurry;

	(void)status;
	client->busy = false;
	if (client->info.step != report->step)
		client->info.step_ms = uv_now(client->loop);
	client->info.step = report->step;
	client->info.phase = report->phase;
	client->info.step_source = report->step_source;
	client->info.gpu_ops = report->gpu_ops;
	client->info.late_calls = report->late_calls;
	client->info.late_records = report->late_records;
	hurry = (report->open_cycle && !client->info.open_cycle) ||
		(report->closing && !client->info.closing);
	client->info.open_cycle = report->open_cycle;
	client->info.closing = report->closing;
	if (hurry)
		client->config->hurry(client->config->owner);
	tell_closed(client);
	ops->drained(client->config->ctx, &client->info);
	if (client->finishing) {
		release(client);
		return;
	}
	tell_drained(client);
	if (client->paused && client->fd >= 0) {
		uv_poll_start(&client->socket_poll, UV_READABLE, on_socket);
		gt_client_read(client); /* now: the next drain may be due already, and so on */
	}
	client->paused = false;
	gt_client_advance(client);
}

/*
 * See what is in the arena at a moment when every message that was sent before it has been read,
 * and none that was sent after it. So a drain knows of a profiler that came before what it reads,
 * and where a window's end was told, it reads all of the window. Of a process that says something
 * all the time, what came after the last look may have been read, too. false: the process is gone.
 */
static bool look(struct gt_client *client)
{
	int tries = 0;

	while (!client->gone && tries++ < LOOKS_MAX) {
		gt_recorder_look(client->recorder);
		if (client->fd < 0 || !gt_client_read(client))
			break;
	}
	return !client->gone;
}

void gt_client_advance(struct gt_client *client)
{
	uint64_t now_ms = uv_now(client->loop);
	bool looked;

	if (client->busy || client->released)
		return;
	client->gone |= (client->replaced || client->stopping) && client->fd < 0;
	looked = client->recorder && client->kicked && look(client);
	if (client->gone && client->fd >= 0)
		gt_client_read(client); /* what it sent before its end */
	if (client->gone)
		gt_client_drop_plan(client);
	if (client->gone && !client->recorder) {
		release(client);
		return;
	}
	if (!client->gone && !looked)
		return;
	if (!client->gone)
		gt_client_follow_plans(client);
	client->orderly |= client->gone && gt_recorder_has_ended(client->recorder);
	client->finishing = client->gone;
	client->kicked = false;
	client->flush_due = client->info.open_cycle &&
			    now_ms - client->flushed_ms >= FLUSH_EVERY_MS;
	if (client->flush_due)
		client->flushed_ms = now_ms;
	memset(&client->report, 0, sizeof(client->report));
	client->busy = true;
	uv_queue_work(client->loop, &client->work, work, after_work);
}

/* ---- life ---- */

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct gt_client *client = poll->data;

	(void)status; /* errors show themselves when it is read */
	(void)events;
	if (client->busy) { /* news is for between drains */
		uv_poll_stop(poll);
		client->paused = true;
		return;
	}
	gt_client_read(client);
	gt_client_advance(client);
}

static void on_pid(uv_poll_t *poll, int status, int events)
{
	struct gt_client *client = poll->data;

	(void)status;
	(void)events;
	uv_poll_stop(poll);
	client->gone = true;
	gt_client_advance(client);
}

/* Be told when the process ends. */
static void watch_pid(struct gt_client *client)
{
	client->pidfd = (int)syscall(SYS_pidfd_open, client->pid, 0);
	if (client->pidfd < 0) {
		client->gone = errno == ESRCH;
		return;
	}
	if (uv_poll_init(client->loop, &client->pid_poll, client->pidfd) < 0) {
		close(client->pidfd);
		client->pidfd = -1;
		return;
	}
	client->handles++;
	client->pid_poll.data = client;
	uv_poll_start(&client->pid_poll, UV_READABLE, on_pid);
}

int gt_client_new(struct gt_client **ret, uint64_t id, uv_loop_t *loop, int fd,
		  const struct ucred *cred, const struct gt_client_config *config,
		  struct gt_err *err)
{
	struct gt_client *client;
	int rc;

	if (cred->uid != config->uid) {
		close(fd);
		return gt_err_set(err, -EPERM,
				  "process %d runs as user %u, not as %u: it is not traced",
				  cred->pid, cred->uid, config->uid);
	}
	/* It has no number here, by which its end could be seen, or a signal sent. */
	if (cred->pid <= 0) {
		close(fd);
		return gt_err_set(err, -ESRCH,
				  "a process of another container (PID namespace) is not traced: "
				  "gtrace is to run inside of that");
	}
	client = calloc(1, sizeof(*client));
	if (!client) {
		close(fd);
		return gt_err_sys(err, -ENOMEM, "cannot trace process %d", cred->pid);
	}
	rc = uv_poll_init(loop, &client->socket_poll, fd);
	if (rc < 0) {
		close(fd);
		free(client);
		return gt_err_sys(err, rc, "cannot trace process %d", cred->pid);
	}
	client->info.id = id;
	client->config = config;
	client->loop = loop;
	client->pid = cred->pid;
	client->fd = fd;
	client->handles = 1;
	client->socket_poll.data = client;
	client->connected_ms = uv_now(loop);
	watch_pid(client);
	uv_poll_start(&client->socket_poll, UV_READABLE, on_socket);
	*ret = client;
	return 0;
}

const struct gt_client_info *gt_client_info(const struct gt_client *client)
{
	return &client->info;
}

bool gt_client_is_traced(const struct gt_client *client)
{
	return client->recorder && !client->gone && !client->stopping;
}

uint32_t gt_client_step(const struct gt_client *client)
{
	return client->recorder ? gt_recorder_step(client->recorder) : 0;
}

pid_t gt_client_pid(const struct gt_client *client)
{
	return client->pid;
}

void gt_client_tick(struct gt_client *client)
{
	uint64_t now_ms = uv_now(client->loop);
	bool mute = !client->recorder && now_ms - client->connected_ms > HELLO_WITHIN_MS;
	bool ended = client->pidfd < 0 && kill(client->pid, 0) < 0 && errno == ESRCH;
	bool stopped = client->stopping && now_ms - client->stopped_ms > STOP_WITHIN_MS;

	/* Its HELLO may be there and wait: gtrace, too, may not have run for so long. */
	if (mute && client->fd >= 0) {
		gt_client_read(client);
		mute = !client->recorder;
	}
	client->gone |= mute || ended || stopped;
	client->kicked = true;
	gt_client_advance(client);
}

void gt_client_stop(struct gt_client *client, const char *by)
{
	if (client->stopping)
		return;
	client->stopping = true;
	client->stopped_ms = uv_now(client->loop);
	client->stopped_ns = gt_clock_ns(CLOCK_REALTIME);
	if (client->recorder) {
		gt_recorder_stop(client->recorder, by, client->stopped_ns);
		if (client->fd >= 0 && !gt_message_send(client->fd, GT_MSG_STOP, 0))
			gt_recorder_wake(client->recorder);
	} else {
		client->gone = true;
	}
	gt_client_advance(client);
}

void gt_client_kill(struct gt_client *client, int sig)
{
	if (client->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, client->pidfd, sig, NULL, 0);
	else if (!client->gone)
		kill(client->pid, sig);
}

void gt_client_replaced(struct gt_client *client)
{
	client->replaced = true;
	gt_client_advance(client);
}
