#include "base.h"
#include "signals.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Raised by the program's own faults: they must kill, so they are never taken from a descriptor. */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

int gt_signals_init(struct gt_signals *ret, struct gt_err *err)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL }, ign = { .sa_handler = SIG_IGN };
	struct gt_signals signals;
	sigset_t taken;
	size_t i;

	sigfillset(&taken);
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		sigdelset(&taken, faults[i]);
	signals.fd = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
	if (signals.fd < 0)
		return gt_err_sys(err, -errno, "cannot open a descriptor for signals");
	pthread_sigmask(SIG_BLOCK, &taken, &signals.given_mask);
	/* An ignored SIGCHLD would reap the target before its status is read. */
	sigaction(SIGCHLD, &dfl, &signals.given_chld);
	sigaction(SIGPIPE, &ign, &signals.given_pipe);
	*ret = signals;
	return 0;
}

bool gt_signals_is_end(int sig)
{
	return sig == SIGHUP || sig == SIGINT || sig == SIGQUIT || sig == SIGTERM;
}

int gt_signals_take_end(struct gt_signals *signals)
{
	struct signalfd_siginfo info;
	struct sigaction given;
	int sig, found = 0;

	while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		sig = (int)info.ssi_signo;
		if (found || !gt_signals_is_end(sig))
			continue;
		sigaction(sig, NULL, &given);
		if (given.sa_handler != SIG_IGN)
			found = sig;
	}
	return found;
}

void gt_signals_restore(const struct gt_signals *signals)
{
	sigaction(SIGCHLD, &signals->given_chld, NULL);
	sigaction(SIGPIPE, &signals->given_pipe, NULL);
	sigprocmask(SIG_SETMASK, &signals->given_mask, NULL);
}

void gt_signals_release(struct gt_signals *signals)
{
	gt_signals_restore(signals);
	close(signals->fd);
	signals->fd = -1;
}

/* Let sig, whose disposition becomes the default, act on this process now. */
static void let_act(int sig, struct sigaction *given, sigset_t *given_mask)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t only;

	sigemptyset(&only);
	sigaddset(&only, sig);
	sigaction(sig, &dfl, given);
	raise(sig);
	pthread_sigmask(SIG_UNBLOCK, &only, given_mask);
}

void gt_signals_stop_self(int sig)
{
	struct sigaction given;
	sigset_t given_mask;

	let_act(sig, &given, &given_mask);
	pthread_sigmask(SIG_SETMASK, &given_mask, NULL);
	sigaction(sig, &given, NULL);
}

void gt_signals_die_of(int sig)
{
	struct rlimit no_core = { 0, 0 };
	struct sigaction given;
	sigset_t given_mask;

	setrlimit(RLIMIT_CORE, &no_core);
	let_act(sig, &given, &given_mask);
}
