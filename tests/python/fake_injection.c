/*
 * fake_injection.c - a stand-in for libgtrace-inject.so that writes one line for each call to the
 * file FAKE_LOG: what was called, its argument, and the process. FAKE_TRACED=0 refuses to start.
 */
#include "inject.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

GT_EXPORT void fake_log(const char *what);
GT_EXPORT void fake_cuda_door(void);

static void say(const char *what, uint64_t value)
{
	const char *path = getenv("FAKE_LOG");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s %lx %d\n", what, (unsigned long)value, (int)getpid());
	close(fd);
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

	say("start", (uint64_t)door);
	return !traced || *traced != '0';
}

void gtrace_inject_step(void)
{
	say("step", 0);
}

void gtrace_inject_optimizer_step(uint64_t key)
{
	say("optimizer", key);
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
