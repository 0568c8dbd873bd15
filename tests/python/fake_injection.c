/*
 * fake_injection.c - a stand-in for libgtrace-inject.so that writes one line for each call to the
 * file FAKE_LOG: what was called, its argument, and the process; of a source of steps, its name;
 * of a warning, its text. FAKE_TRACED=0 refuses to start, FAKE_RANGES=1 wants ranges.
 */
#include "inject.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

GT_EXPORT void fake_log(const char *what);
GT_EXPORT void fake_cuda_door(void);

static bool started;

static void say_text(const char *what, const char *text)
{
	const char *path = getenv("FAKE_LOG");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s %s %d\n", what, text, (int)getpid());
	close(fd);
}

static void say(const char *what, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lx", (unsigned long)value);
	say_text(what, text);
}

/* For the fake torch: its own lines between ours. */
void fake_log(const char *what)
{
	say(what, 0);
}

bool inj_alive(void)
{
	return true;
}

int gtrace_inject_start(int door)
{
	const char *traced = getenv("FAKE_TRACED");

	if (!door)
		return started;
	say("start", (uint64_t)door);
	started = !traced || *traced != '0';
	return started;
}

void gtrace_inject_step(void)
{
	say("step", 0);
}

void gtrace_inject_optimizer_step(uint64_t key)
{
	say("optimizer", key);
}

#define X(id, name) name,
static const char *const sources[] = { GT_STEP_SOURCES(X) };
#undef X

int gtrace_inject_source(const char *name)
{
	say_text("claim", name);
	for (int i = GT_STEP_NONE; i < GT_STEP_SOURCE_MAX; i++) {
		if (!strcmp(name, sources[i]))
			return i;
	}
	return 0;
}

void gtrace_inject_mark(int source)
{
	say_text("mark", sources[source]);
}

void gtrace_inject_push(const char *text)
{
	say_text("push", text);
}

void gtrace_inject_pop(void)
{
	say("pop", 0);
}

const _Atomic uint32_t *gtrace_inject_ranges(void)
{
	static _Atomic uint32_t wanted;
	const char *ranges = getenv("FAKE_RANGES");

	wanted = ranges && *ranges == '1';
	return &wanted;
}

void gtrace_inject_rank(uint32_t rank, uint32_t world_size)
{
	char text[32];

	snprintf(text, sizeof(text), "%u/%u", rank, world_size);
	say_text("rank", text);
}

void gtrace_inject_warn(const char *text)
{
	say_text("warn", text);
}

void gtrace_inject_torch(const char *version)
{
	(void)version;
}

/* FAKE_OPS=1: there is an observer to register. */
int gtrace_inject_ops_test(void)
{
	const char *ops = getenv("FAKE_OPS");

	if (!ops || *ops != '1')
		return 0;
	say("ops", 0);
	return 1;
}

int gtrace_inject_ops_begin(int at_once)
{
	say("begin", (uint64_t)at_once);
	return 1;
}

void gtrace_inject_yield(void)
{
	say("yield", 0);
}

void gtrace_inject_resume(void)
{
	say("resume", 0);
}

static void *control_thread(void *arg)
{
	int wait_ms;

	(void)arg;
	while ((wait_ms = inj_python_poll()) >= 0)
		poll(NULL, 0, wait_ms);
	say("settled", 0);
	return NULL;
}

/* What the CUDA door does for Python. */
void fake_cuda_door(void)
{
	pthread_t thread;

	inj_python_init();
	if (!pthread_create(&thread, NULL, control_thread, NULL))
		pthread_detach(thread);
}
