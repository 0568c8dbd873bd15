#include "base.h"
#include "client.h"
#include "message.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HELLO_WITHIN_MS 10000 /* a connection without a HELLO is closed after this time */
#define FLUSH_EVERY_MS  100   /* so much of an open window is lost when gtrace is killed */
#define STOP_WITHIN_MS  300   /* a process that was told to stop is not waited for longer */
#define LOG_LINES_MAX   100   /* of one client */
#define MESSAGES_MAX    512   /* read at a time: other clients wait; more than a socket holds */

struct gt_client {
	struct gt_client_info info;
	const struct gt_client_config *config;
	pid_t pid;
	int fd;    /* -1: closed */
	int pidfd; /* -1: the kernel gives none */
	uv_poll_t socket_poll;
	uv_poll_t pid_poll;
	unsigned int handles; /* open ones */
	uv_work_t work;
	uv_loop_t *loop;
	struct gt_recorder *recorder; /* NULL before HELLO */
	struct gt_recorder_config recorder_config;
	uint64_t connected_ms;
	uint64_t stopped_ms;
	uint64_t flushed_ms;
	uint64_t drained_cycles; /* so many have every record */
	uint64_t drained_told;   /* so many the process knows of */
	struct gt_plan plan;     /* that was proposed last */
	uint32_t plan_id;        /* its own */
	struct gt_plan plan_was; /* that recorder and process know of */
	bool plan_new;           /* they are to hear of it, */
	bool plan_decided;       /* and of what became of the one they know of: */
	bool plan_commit;
	unsigned int log_lines;
	bool busy;     /* a worker thread has the recorder */
	bool kicked;   /* drain again when it is back */
	bool paused;   /* the socket waits until it is back */
	bool gone;     /* the process has ended, or counts as if it had */
	bool orderly;  /* it said BYE */
	bool replaced; /* its process has another connection */
	bool stopping; /* it was told to stop */
	bool released; /* no longer the owner's; free when the handles are closed */
	/* the drain in a worker thread */
	bool finishing; /* it is the last one */
	bool flush_due;
	char told_failure[sizeof(((struct gt_err *)0)->msg)];
	struct gt_recorder_report report;
};

static void advance(struct gt_client *client);
static void on_socket(uv_poll_t *poll, int status, int events);

static uint64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * GT_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

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

static void close_socket(struct gt_client *client)
{
	if (client->fd < 0)
		return;
	uv_close((uv_handle_t *)&client->socket_poll, on_closed);
	close(client->fd);
	client->fd = -1;
}

static void release(struct gt_client *client)
{
	close_socket(client);
	if (client->pidfd >= 0)
		uv_close((uv_handle_t *)&client->pid_poll, on_closed);
	gt_recorder_free(client->recorder);
	client->config->ops->gone(client->config->ctx, &client->info);
	client->config->released(client->config->owner, client);
	client->released = true;
	free_when_closed(client);
}

/* The peer broke the protocol: err goes on "process 4711 …". */
static void refuse(struct gt_client *client, const struct gt_err *err)
{
	struct gt_err full;

	gt_err_set(&full, err->code, "process %d %s: it is no longer traced", client->pid,
		   err->msg);
	client->config->ops->failed(client->config->ctx, &client->info, &full);
	close_socket(client);
	client->gone = true;
}

/* ---- messages ---- */

static int path_for(void *ctx, const struct gt_msg_hello *hello, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *err)
{
	struct gt_client *client = ctx;

	(void)hello; /* as in client->info */
	return client->config->ops->path_for(client->config->ctx, &client->info, cycle, buf, len,
					     overwrite, err);
}

/* arena_fd is taken over. */
static int take_hello(struct gt_client *client, const struct gt_msg_hello *hello, int arena_fd,
		      struct gt_err *err)
{
	struct gt_err why;
	int rc;

	client->info.hello = *hello;
	client->info.hello.pid = (uint32_t)client->pid;
	client->info.has_hello = true;
	client->recorder_config = client->config->recorder;
	client->recorder_config.path_for = path_for;
	client->recorder_config.ctx = client;
	client->kicked = true;
	rc = gt_recorder_new(&client->recorder, arena_fd, &client->info.hello,
			     &client->recorder_config, &why);
	if (rc < 0)
		return gt_err_set(err, rc, "has an arena that cannot be used (%s)", why.msg);
	return 0;
}

static void take_answer(struct gt_client *client, const struct gt_msg_phase *phase)
{
	if (client->info.plan_state != GT_PLAN_ASKED || phase->cycle != client->plan_id)
		return; /* to what was taken back meanwhile */
	client->info.plan_state = phase->what == GT_WHAT_PLAN_TAKEN ? GT_PLAN_TAKEN : GT_PLAN_LATE;
	client->info.plan_step = (uint32_t)phase->value;
	client->config->answered(client->config->owner, client);
}

static void take_phase(struct gt_client *client, const struct gt_msg_phase *phase)
{
	if (phase->what == GT_WHAT_PLAN_TAKEN || phase->what == GT_WHAT_PLAN_LATE) {
		take_answer(client, phase);
		return;
	}
	if (phase->what == GT_WHAT_ATTACHED) {
		client->info.hello.cupti_version = phase->cupti_version;
		client->info.hello.driver_version = phase->driver_version;
		client->info.hello.runtime_version = phase->runtime_version;
	}
	/* Before the first window opens. */
	if (phase->what == GT_WHAT_STEP_SOURCE && phase->value < GT_STEP_SOURCE_MAX)
		client->info.step_source = (enum gt_step_source)phase->value;
	gt_recorder_phase(client->recorder, phase);
	client->kicked = true;
	client->gone |= client->stopping && phase->what == GT_WHAT_OFF;
	client->config->ops->phase(client->config->ctx, &client->info, phase);
}

static void take_device(struct gt_client *client, const struct gt_msg_device *device)
{
	if (!client->info.device_count++)
		client->info.device = *device;
	gt_recorder_device(client->recorder, device);
}

/* A file that is open keeps its name and what it says. */
static void take_rank(struct gt_client *client, const struct gt_msg_rank *rank)
{
	struct gt_msg_hello *hello = &client->info.hello;

	hello->rank = rank->rank;
	hello->world_size = rank->world_size;
	hello->rank_source = (uint8_t)rank->rank_source;
	gt_recorder_rank(client->recorder, rank);
}

static void take_log(struct gt_client *client, const struct gt_msg_log *log)
{
	static const char enough[] = "further lines of this process are left out";
	const struct gt_client_ops *ops = client->config->ops;

	if (client->log_lines > LOG_LINES_MAX)
		return;
	if (client->log_lines++ < LOG_LINES_MAX)
		ops->log(client->config->ctx, &client->info, (enum gt_log_level)log->level,
			 log->text, log->len_bytes);
	else
		ops->log(client->config->ctx, &client->info, GT_LOG_WARN, enough, strlen(enough));
}

/* fd is the HELLO's, else -1. */
static int take(struct gt_client *client, const union gt_message *msg, int fd, struct gt_err *err)
{
	if (msg->hdr.type == GT_MSG_HELLO) {
		if (!client->info.has_hello)
			return take_hello(client, &msg->hello, fd, err);
		close(fd);
		return gt_err_set(err, -EPROTO, "introduced itself twice");
	}
	if (msg->hdr.type == GT_MSG_LOG) {
		take_log(client, &msg->log);
		return 0;
	}
	if (!client->recorder)
		return gt_err_set(err, -EPROTO, "did not introduce itself");
	if (msg->hdr.type == GT_MSG_PHASE)
		take_phase(client, &msg->phase);
	else if (msg->hdr.type == GT_MSG_DEVICE)
		take_device(client, &msg->device);
	else if (msg->hdr.type == GT_MSG_RANK)
		take_rank(client, &msg->rank);
	else
		client->orderly = true; /* BYE */
	return 0;
}

static void read_messages(struct gt_client *client)
{
	union gt_message msg;
	struct gt_err err;
	int rc = 1, i, fd;

	for (i = 0; i < MESSAGES_MAX && rc > 0; i++) {
		rc = gt_message_receive(client->fd, &msg, &fd, &err);
		if (rc > 0 && take(client, &msg, fd, &err) < 0)
			rc = -EPROTO;
	}
	if (rc == -EPIPE) {
		/* It may only have closed the descriptor: its end is learned of from the kernel. */
		close_socket(client);
		if (client->pidfd < 0)
			client->gone = true;
	} else if (rc < 0) {
		refuse(client, &err);
	}
}

/* ---- plans ---- */

bool gt_client_propose(struct gt_client *client, const struct gt_plan *plan)
{
	if (!client->recorder || client->gone || client->stopping || client->fd < 0)
		return false;
	client->plan = *plan;
	client->plan_id++;
	client->plan_new = true;
	client->info.plan_state = GT_PLAN_ASKED;
	client->kicked = true;
	advance(client);
	return true;
}

void gt_client_decide(struct gt_client *client, bool commit)
{
	if (client->info.plan_state == GT_PLAN_NONE)
		return;
	client->plan_decided = !client->plan_new; /* else nobody knows of it yet */
	client->plan_new = false;
	client->plan_commit = commit && client->info.plan_state == GT_PLAN_TAKEN;
	client->info.plan_state = GT_PLAN_NONE;
	client->kicked = true;
	advance(client);
}

uint32_t gt_client_step(const struct gt_client *client)
{
	return client->recorder ? gt_recorder_step(client->recorder) : 0;
}

/* It cannot take part any more. */
static void drop_plan(struct gt_client *client)
{
	if (client->info.plan_state == GT_PLAN_NONE)
		return;
	client->info.plan_state = GT_PLAN_NONE;
	client->config->answered(client->config->owner, client);
}

/* Between drains: the recorder is to know of a plan before the program does. */
static void follow_plans(struct gt_client *client)
{
	if (client->plan_decided) {
		client->plan_decided = false;
		gt_recorder_decide(client->recorder, client->plan_commit);
		client->info.plans = *gt_recorder_plans(client->recorder);
		if (!client->plan_commit && client->fd >= 0)
			gt_message_send(client->fd, GT_MSG_CANCEL, client->plan_was.cycle);
		gt_recorder_wake(client->recorder);
	}
	if (!client->plan_new)
		return;
	client->plan_new = false;
	client->plan_was = client->plan;
	gt_recorder_hold(client->recorder, &client->plan);
	if (client->fd >= 0 && !gt_message_send_plan(client->fd, &client->plan, client->plan_id)) {
		gt_recorder_wake(client->recorder);
		return;
	}
	gt_recorder_decide(client->recorder, false);
	drop_plan(client);
}

/* ---- drains ---- */

static void work(uv_work_t *request)
{
	struct gt_client *client = container_of(request, struct gt_client, work);

	if (client->finishing)
		gt_recorder_finish(client->recorder, !client->orderly, realtime_ns(),
				   &client->report);
	else
		gt_recorder_drain(client->recorder, realtime_ns(), client->flush_due,
				  &client->report);
}

static void tell_drained(struct gt_client *client)
{
	const struct gt_recorder_report *report = &client->report;

	if (report->drained)
		client->drained_cycles = GT_MAX(client->drained_cycles, report->drained_cycle + 1);
	/* When the socket is full, the next drain tries again. */
	if (client->drained_cycles > client->drained_told && client->fd >= 0 &&
	    !gt_message_send(client->fd, GT_MSG_DRAINED, client->drained_cycles - 1))
		client->drained_told = client->drained_cycles;
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
			tell_failure(client, &closed->err);
			continue;
		}
		client->info.files++;
		client->info.whole_run |= closed->whole_run;
		client->config->ops->closed(client->config->ctx, &client->info, closed);
	}
}

static void after_work(uv_work_t *request, int status)
{
	struct gt_client *client = container_of(request, struct gt_client, work);
	const struct gt_client_ops *ops = client->config->ops;
	const struct gt_recorder_report *report = &client->report;

	(void)status;
	client->busy = false;
	client->info.step = report->step;
	client->info.phase = report->phase;
	client->info.step_source = report->step_source;
	client->info.gpu_ops = report->gpu_ops;
	if (report->open_cycle && !client->info.open_cycle)
		client->config->opened(client->config->owner);
	client->info.open_cycle = report->open_cycle;
	tell_closed(client);
	ops->drained(client->config->ctx, &client->info);
	if (client->finishing) {
		release(client);
		return;
	}
	tell_drained(client);
	if (client->paused && client->fd >= 0) {
		uv_poll_start(&client->socket_poll, UV_READABLE, on_socket);
		read_messages(client); /* now: the next drain may be due already, and so on */
	}
	client->paused = false;
	advance(client);
}

/* Do what is due, unless a worker thread has the recorder: then this is called when it is back. */
static void advance(struct gt_client *client)
{
	uint64_t now_ms = uv_now(client->loop);

	if (client->busy || client->released)
		return;
	client->gone |= (client->replaced || client->stopping) && client->fd < 0;
	if (client->gone && client->fd >= 0)
		read_messages(client); /* what it sent before its end */
	if (client->gone)
		drop_plan(client);
	if (client->gone && !client->recorder) {
		release(client);
		return;
	}
	if (!client->recorder || !(client->gone || client->kicked))
		return;
	if (!client->gone)
		follow_plans(client);
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
	read_messages(client);
	advance(client);
}

static void on_pid(uv_poll_t *poll, int status, int events)
{
	struct gt_client *client = poll->data;

	(void)status;
	(void)events;
	uv_poll_stop(poll);
	client->gone = true;
	advance(client);
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

	client->gone |= mute || ended || stopped;
	client->kicked = true;
	advance(client);
}

void gt_client_stop(struct gt_client *client)
{
	if (client->stopping)
		return;
	client->stopping = true;
	client->stopped_ms = uv_now(client->loop);
	if (!client->recorder)
		client->gone = true;
	else if (client->fd >= 0 && !gt_message_send(client->fd, GT_MSG_STOP, 0))
		gt_recorder_wake(client->recorder);
	advance(client);
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
	advance(client);
}
