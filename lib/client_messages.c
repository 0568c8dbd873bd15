/*
 * client_messages.c - what a traced process says to its client.
 */
#include "base.h"
#include "client_priv.h"
#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_LINES_MAX 100 /* of one client */
#define MESSAGES_MAX  512 /* read at a time: other clients wait; more than a socket holds */

/* The peer broke the protocol: err goes on "process 4711 …". */
static void refuse(struct gt_client *client, const struct gt_err *err)
{
	struct gt_err full;

	gt_err_set(&full, err->code, "process %d %s: it is no longer traced", client->pid,
		   err->msg);
	client->config->ops->failed(client->config->ctx, &client->info, &full);
	gt_client_close_socket(client);
	client->info.end = GT_CLIENT_REFUSED;
	client->gone = true;
}

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

static void take_phase(struct gt_client *client, const struct gt_msg_phase *phase)
{
	if (phase->what == GT_WHAT_PLAN_TAKEN || phase->what == GT_WHAT_PLAN_LATE) {
		gt_client_take_answer(client, phase);
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
	if (phase->what == GT_WHAT_LEFT_OUT && phase->cycle == client->info.awaited.cycle)
		client->info.awaited.active = 0;
	gt_recorder_phase(client->recorder, phase);
	client->kicked = true;
	/* One from before it was told is that of another window. */
	client->gone |= client->stopping && phase->what == GT_WHAT_OFF &&
			phase->time_ns >= client->stopped_ns;
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

/* Does another program run in this process, without the arena? One that ends maps nothing. */
static bool has_executed(pid_t pid)
{
	bool any = false, arena = false;
	char path[32], *line = NULL;
	size_t cap = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && !arena && getline(&line, &cap, maps) > 0) {
		any = true;
		arena = strstr(line, "/memfd:" GT_ARENA_NAME);
	}
	if (maps)
		fclose(maps);
	free(line);
	return any && !arena;
}

bool gt_client_read(struct gt_client *client)
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
		gt_client_close_socket(client);
		if (client->pidfd < 0)
			client->gone = true;
		else if (client->recorder && !client->orderly)
			client->replaced |= has_executed(client->pid);
	} else if (rc < 0) {
		refuse(client, &err);
	}
	return i > 1 || rc > 0;
}
