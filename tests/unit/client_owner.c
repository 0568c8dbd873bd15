#include "base.h"
#include "client_owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

struct owner_seen seen;
uv_loop_t loop;
struct gt_client *client;
int peer = -1;
pid_t process = -1;

static void on_phase(void *ctx, const struct gt_client_info *info, const struct gt_msg_phase *phase)
{
	(void)ctx;
	(void)phase;
	seen.info = *info;
	seen.phases++;
}

static void on_drained(void *ctx, const struct gt_client_info *info)
{
	(void)ctx;
	seen.info = *info;
	seen.drained++;
}

static void on_closed(void *ctx, const struct gt_client_info *info,
		      const struct gt_recorder_closed *closed)
{
	(void)ctx;
	(void)info;
	(void)closed;
	seen.closed++;
}

static void on_log(void *ctx, const struct gt_client_info *info, enum gt_log_level level,
		   const char *text, size_t len)
{
	(void)ctx;
	(void)info;
	(void)level;
	snprintf(seen.log, sizeof(seen.log), "%.*s", (int)len, text);
	seen.logs++;
}

static void on_failed(void *ctx, const struct gt_client_info *info, const struct gt_err *err)
{
	(void)ctx;
	(void)info;
	snprintf(seen.failure, sizeof(seen.failure), "%s", err->msg);
	seen.failures++;
}

static void on_gone(void *ctx, const struct gt_client_info *info)
{
	(void)ctx;
	seen.info = *info;
	seen.gone++;
}

static int path_for(void *ctx, const struct gt_client_info *info, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *err)
{
	(void)ctx;
	(void)err;
	*overwrite = false;
	snprintf(buf, len, "client %d pid %u cycle %d", (int)info->id, info->hello.pid, (int)cycle);
	return 0;
}

static void on_released(void *owner, struct gt_client *released)
{
	(void)owner;
	assert_ptr_equal(released, client);
	client = NULL;
	seen.released++;
}

static void on_hurry(void *owner)
{
	(void)owner;
	seen.hurries++;
}

static const struct gt_client_ops ops = {
	.phase = on_phase,
	.drained = on_drained,
	.closed = on_closed,
	.log = on_log,
	.failed = on_failed,
	.gone = on_gone,
	.path_for = path_for,
};

static void on_answered(void *owner, struct gt_client *answering)
{
	(void)owner;
	seen.answer = gt_client_info(answering)->plan_state;
	seen.answers++;
}

struct gt_client_config config = {
	.ops = &ops, .released = on_released, .hurry = on_hurry, .answered = on_answered
};

/* One that has an arena, as is seen by its name. */
static void start_process(void)
{
	int memory = memfd_create(GT_ARENA_NAME, MFD_CLOEXEC);
	void *arena = mmap(NULL, 1, PROT_READ, MAP_SHARED, memory, 0);

	close(memory);
	process = fork();
	if (!process) {
		close(peer);
		for (;;)
			pause();
	}
	munmap(arena, 1);
}

void owner_end_process(void)
{
	if (process < 0)
		return;
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	process = -1;
}

void owner_close_peer(void)
{
	if (peer >= 0)
		close(peer);
	peer = -1;
}

int owner_connect(uid_t uid)
{
	struct ucred cred = { .pid = process, .uid = uid };
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	peer = fds[1];
	return gt_client_new(&client, 7, &loop, fds[0], &cred, &config, NULL);
}

int owner_start(void **state)
{
	(void)state;
	fake_recorder_reset();
	memset(&seen, 0, sizeof(seen));
	config.uid = geteuid();
	start_process();
	return uv_loop_init(&loop) || owner_connect(geteuid());
}

int owner_stop(void **state)
{
	(void)state;
	owner_end_process();
	uv_run(&loop, UV_RUN_DEFAULT);
	owner_close_peer();
	/* All handles are closed, everything is given back, each thing once. */
	if (uv_loop_close(&loop) || client || fake.interleaved || seen.released > 1)
		return -1;
	return fake.frees == fake.finishes ? 0 : -1;
}

void owner_run_until(const int *counter, int want)
{
	while (*counter < want)
		uv_run(&loop, UV_RUN_ONCE);
}

void owner_tick(uv_timer_t *timer)
{
	(void)timer;
	if (client)
		gt_client_tick(client);
}
