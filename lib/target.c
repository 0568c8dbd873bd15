#include "base.h"
#include "target.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The kernel, and even more a launcher that signals one process after the other, may reach gtrace
 * before the witness: a "no" counts when it is repeated after this time.
 */
#define ASK_AGAIN_MS     30
#define ANSWER_WITHIN_MS 200 /* or it is looked whether the witness can answer at all */
#define TICK_MS          10

static void pass_on(struct gt_target *target, struct gt_target_question *question)
{
	question->open = false;
	if (!question->pass_on || target->over)
		return;
	if (question->mark.code == SI_QUEUE)
		sigqueue(target->pid, question->mark.signo, question->value);
	else
		kill(target->pid, question->mark.signo);
}

static void ask(struct gt_target *target, struct gt_target_question *question)
{
	question->answered = false;
	if (gt_witness_ask(target->witness, &question->mark) < 0)
		pass_on(target, question);
}

static void on_tick(uv_timer_t *timer)
{
	struct gt_target *target = container_of(timer, struct gt_target, timer);
	struct gt_target_question *question;
	uint64_t age_ms;
	bool any = false;
	size_t i;

	for (i = 0; i < GT_TARGET_QUESTIONS; i++) {
		question = &target->questions[i];
		if (!question->open)
			continue;
		age_ms = uv_now(timer->loop) - question->signal_ms;
		if (question->answered && age_ms >= ASK_AGAIN_MS) {
			question->asked_again = true;
			ask(target, question);
		} else if (age_ms >= ANSWER_WITHIN_MS && gt_witness_is_mute(target->witness)) {
			pass_on(target, question);
		}
		any |= question->open;
	}
	if (!any)
		uv_timer_stop(timer);
}

/* An open one of this signal, or one that waits for an answer. */
static struct gt_target_question *find(struct gt_target *target, const struct gt_witness_mark *mark,
				       bool waiting)
{
	size_t i;

	for (i = 0; i < GT_TARGET_QUESTIONS; i++)
		if (target->questions[i].open && !(waiting && target->questions[i].answered) &&
		    !memcmp(&target->questions[i].mark, mark, sizeof(*mark)))
			return &target->questions[i];
	return NULL;
}

static void on_answer(uv_poll_t *poll, int status, int events)
{
	struct gt_target *target = container_of(poll, struct gt_target, witness_poll);
	struct gt_target_question *question;
	struct gt_witness_answer answer;
	int rc;

	(void)events;
	while (!(rc = status < 0 ? -EPIPE : gt_witness_read(target->witness, &answer))) {
		question = find(target, &answer.mark, true);
		if (!question)
			continue;
		question->answered = true;
		if (answer.seen)
			question->open = false;
		else if (question->asked_again)
			pass_on(target, question);
	}
	if (rc == -EPIPE)
		uv_poll_stop(poll);
}

static void question_signal(struct gt_target *target, const struct signalfd_siginfo *info)
{
	struct gt_target_question question = {
		.mark = { .signo = (int32_t)info->ssi_signo,
			  .code = info->ssi_code,
			  .pid = (int32_t)info->ssi_pid },
		.value.sival_ptr = (void *)(uintptr_t)info->ssi_ptr,
		.open = true,
		/*
		 * From the terminal, from the target itself, or raised by what gtrace writes to
		 * nobody or beyond a limit: not meant for gtrace. But that the terminal is gone is
		 * told the leader of the session alone, which gtrace may be.
		 */
		.pass_on = (info->ssi_code <= 0 || info->ssi_signo == SIGHUP) &&
			   (pid_t)info->ssi_pid != target->pid &&
			   !((info->ssi_signo == SIGPIPE || info->ssi_signo == SIGXFSZ) &&
			     (pid_t)info->ssi_pid == getpid()),
		.signal_ms = uv_now(target->timer.loop),
	};
	size_t i;

	target->asked_to_end |= gt_signals_is_end(question.mark.signo);
	/* The kernel joins equal signals that wait; so it may have done for the witness. */
	if (question.mark.signo < SIGRTMIN && find(target, &question.mark, false))
		return;
	for (i = 0; i < GT_TARGET_QUESTIONS; i++) {
		if (target->questions[i].open)
			continue;
		target->questions[i] = question;
		ask(target, &target->questions[i]);
		if (!uv_is_active((uv_handle_t *)&target->timer))
			uv_timer_start(&target->timer, on_tick, TICK_MS, TICK_MS);
		return;
	}
	pass_on(target, &question);
}

/* The target changed its state. */
static void reap(struct gt_target *target)
{
	int status, stopped_by = 0;

	/* What happened last counts: it may have been continued meanwhile. */
	while (!target->over &&
	       waitpid(target->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == target->pid) {
		stopped_by = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
		if (!WIFEXITED(status) && !WIFSIGNALED(status))
			continue;
		target->over = true;
		target->ended(target, status);
	}
	/* The shell sees gtrace alone: when its job stops, gtrace has to stop the same way. */
	if (stopped_by == SIGTSTP || stopped_by == SIGTTIN || stopped_by == SIGTTOU)
		gt_signals_stop_self(stopped_by);
}

static void on_signal(uv_poll_t *poll, int status, int events)
{
	struct gt_target *target = container_of(poll, struct gt_target, signal_poll);
	struct signalfd_siginfo info;

	(void)status;
	(void)events;
	while (read(target->signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(target);
		else if (target->taken && target->taken(target, (int)info.ssi_signo))
			continue;
		else if (!target->over)
			question_signal(target, &info);
		else if (gt_signals_is_end((int)info.ssi_signo)) /* not a terminal's new size */
			target->interrupted(target, (int)info.ssi_signo);
	}
}

int gt_target_start(struct gt_target *target, uv_loop_t *loop, struct gt_err *err)
{
	int rc;

	memset(target->questions, 0, sizeof(target->questions));
	target->over = target->asked_to_end = false;
	rc = uv_poll_init(loop, &target->signal_poll, target->signals->fd);
	if (rc < 0)
		return gt_err_sys(err, rc, "cannot watch for signals");
	rc = uv_poll_init(loop, &target->witness_poll, target->witness->fd);
	if (rc < 0) {
		uv_close((uv_handle_t *)&target->signal_poll, NULL);
		return gt_err_sys(err, rc, "cannot watch the witness of signals");
	}
	uv_timer_init(loop, &target->timer);
	uv_poll_start(&target->signal_poll, UV_READABLE, on_signal);
	uv_poll_start(&target->witness_poll, UV_READABLE, on_answer);
	return 0;
}

void gt_target_close(struct gt_target *target)
{
	uv_close((uv_handle_t *)&target->timer, NULL);
	uv_close((uv_handle_t *)&target->signal_poll, NULL);
	uv_close((uv_handle_t *)&target->witness_poll, NULL);
}
