/*
 * run.c - 'gtrace run': what is made ready, the command, its processes while it runs, its end. Each
 * run_*.c is a part of it: options, what stands in its environment, what is said to the user.
 */
#include "base.h"
#include "cmd.h"
#include "collector.h"
#include "command_name.h"
#include "die.h"
#include "env.h"
#include "launch.h"
#include "other_tool.h"
#include "preflight.h"
#include "run_container.h"
#include "run_control.h"
#include "run_environment.h"
#include "run_exec.h"
#include "run_nsight.h"
#include "run_options.h"
#include "run_report.h"
#include "session.h"
#include "signals.h"
#include "sockdir.h"
#include "target.h"
#include "witness.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long processes may outlive the command; less where somebody waits to kill all. */
#define DESCENDANTS_MS       2000
#define DESCENDANTS_ENDED_MS 500
#define PROGRESS_MS          500

struct run {
	struct run_options options;
	struct run_report report;
	struct gt_session *session;
	struct gt_preflight preflight;
	struct gt_sockdir sockdir;
	struct gt_signals signals;
	struct gt_witness witness;
	uv_loop_t loop;
	struct gt_target target;
	struct gt_collector collector;
	struct run_control control;
	uv_timer_t linger_timer;
	uv_timer_t progress_timer;
	uv_work_t first_work;
	char *command; /* as one line */
	char host[HOST_NAME_MAX + 1];
	const char *environment[RUN_ENVIRONMENT_NOTES]; /* what falsifies timings */
	bool ended;
	int status;   /* of the target, as by waitpid() */
	bool stopped; /* by --then stop */
};

/* ---- before the start ---- */

static void open_session(struct run *run)
{
	struct gt_session_config config = {
		.dir = run->options.output_dir,
		.cycles = run->options.schedule.repeat != 1 || run->options.schedule.on_demand,
		.force = run->options.force,
		.tensorboard_host = run->options.tensorboard ? run->host : NULL,
	};
	char name[GT_SESSION_NAME_MAX + 1];
	struct gt_err err;

	gt_command_name(run->options.command, name, sizeof(name));
	config.name = run->options.name ? run->options.name : name;
	gt_job_from_env(getenv, &config.job);
	if (config.job.rank.rank) { /* that of rank 0 tells of the job */
		speak_as_rank(config.job.rank.rank);
		run->options.quiet |= !run->options.verbose;
	}
	if (gt_session_open(&run->session, &config, &err) < 0)
		die(STATUS_OWN_FAILURE, "run: %s; %s", err.msg, gt_session_advice(err.code));
}

/* Signals are as they were given. */
static void __attribute__((noreturn)) leave_untraced(struct run *run, const struct gt_err *err)
{
	gt_session_free(run->session);
	run_untraced(run->options.command, "%s", err->msg);
}

/* The same when all of prepare() is done. */
static void __attribute__((noreturn)) give_up(struct run *run, const struct gt_err *err)
{
	run_control_close(&run->control);
	gt_sockdir_close(&run->sockdir);
	gt_witness_stop(&run->witness);
	gt_signals_release(&run->signals);
	leave_untraced(run, err);
}

/* Threads of libuv, which has 4 otherwise; each works for one process at a time. */
static unsigned int pool_size(void)
{
	const char *given = getenv("UV_THREADPOOL_SIZE");
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (given)
		return (unsigned int)GT_MIN(GT_MAX(strtol(given, NULL, 10), 1), 1024);
	return (unsigned int)GT_MIN(GT_MAX(cpus / 4, 4), 32);
}

/* Another tool in the program: then -EBUSY, unless --force takes its place. */
static int check_other_tool(struct run *run, struct gt_err *err)
{
	struct gt_other_tool tool;

	if (!gt_other_tool_find(&tool, run->options.command, getenv, run->preflight.injection))
		return 0;
	if (run->options.force) {
		warn("%s: --force traces all the same, and either may lose records", tool.how);
		return 0;
	}
	return gt_err_set(err, -EBUSY, "%s; %s", tool.how,
			  tool.nsys
				  ? "--nsight has it record the steps, --force traces all the same"
				  : "run one without the other, or both with --force");
}

/* What tracing needs; without it the command runs untraced. */
static void prepare(struct run *run)
{
	const char *bases[GT_SOCKDIR_BASES];
	struct gt_err err;

	if (gt_preflight_find(&run->preflight, getenv(GT_ENV_INJECTION), &err) < 0 ||
	    check_other_tool(run, &err) < 0 || gt_preflight_room(pool_size(), &err) < 0 ||
	    gt_preflight_load(run->preflight.injection, &err) < 0 ||
	    gt_signals_init(&run->signals, &err) < 0)
		leave_untraced(run, &err);
	gt_sockdir_bases(getenv, bases);
	if (gt_sockdir_open(&run->sockdir, bases, ARRAY_SIZE(bases), &err) < 0) {
		gt_signals_release(&run->signals);
		leave_untraced(run, &err);
	}
	if (gt_witness_start(&run->witness, &run->sockdir, &err) < 0) {
		gt_sockdir_close(&run->sockdir);
		gt_signals_release(&run->signals);
		leave_untraced(run, &err);
	}
}

/* Give back what a run holds besides its memory. */
static void clean_up(struct run *run)
{
	run_control_close(&run->control);
	gt_sockdir_close(&run->sockdir);
	gt_session_free(run->session);
	gt_witness_stop(&run->witness);
}

/* The command line on one line, as far as memory goes. */
static char *join(char *const *argv)
{
	size_t len = 1, used = 0;
	char *const *arg;
	char *line;

	for (arg = argv; *arg; arg++)
		len += strlen(*arg) + 1;
	line = calloc(1, len);
	for (arg = argv; line && *arg; arg++)
		used += (size_t)snprintf(line + used, len - used, "%s%s", arg == argv ? "" : " ",
					 *arg);
	return line;
}

/* ---- while it runs ---- */

static void on_phase(void *ctx, const struct gt_client_info *client,
		     const struct gt_msg_phase *phase)
{
	run_report_phase(&((struct run *)ctx)->report, client, phase);
}

static void on_drained(void *ctx, const struct gt_client_info *client)
{
	struct run *run = ctx;

	run_report_drained(&run->report, client);
	if (run->options.then != RUN_THEN_STOP || run->stopped || run->ended ||
	    !gt_collector_is_complete(&run->collector))
		return;
	run->stopped = true;
	kill(run->target.pid, SIGTERM);
}

static void on_closed(void *ctx, const struct gt_client_info *client,
		      const struct gt_recorder_closed *closed)
{
	run_report_closed(&((struct run *)ctx)->report, client, closed);
}

static void on_log(void *ctx, const struct gt_client_info *client, enum gt_log_level level,
		   const char *text, size_t len)
{
	run_report_log(&((struct run *)ctx)->report, client, level, text, len);
}

static void on_failed(void *ctx, const struct gt_client_info *client, const struct gt_err *err)
{
	bool full = err->code == -ENOSPC || err->code == -EDQUOT;

	(void)client;
	((struct run *)ctx)->report.said_failure = true;
	warn("%s%s%s", err->msg, full ? "; " : "", full ? gt_session_advice(err->code) : "");
}

static void on_gone(void *ctx, const struct gt_client_info *client)
{
	run_report_gone(&((struct run *)ctx)->report, client);
}

/* Called from worker threads. */
static int path_for(void *ctx, const struct gt_client_info *client, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *err)
{
	struct run *run = ctx;

	return gt_session_path(run->session, client->id, client->hello.rank, client->hello.pid,
			       cycle, buf, len, overwrite, err);
}

static void on_idle(void *ctx)
{
	struct run *run = ctx;

	if (run->ended)
		uv_stop(&run->loop);
}

static void on_linger_over(uv_timer_t *timer)
{
	struct gt_collector *collector = &container_of(timer, struct run, linger_timer)->collector;

	if (gt_collector_leader(collector) && !gt_collector_is_complete(collector))
		warn("processes outlive the command: they are no longer traced");
	gt_collector_stop(collector, "the end of the command");
}

static void on_ended(struct gt_target *target, int status)
{
	struct run *run = container_of(target, struct run, target);

	run->ended = true;
	run->status = status;
	gt_collector_accept(&run->collector);
	if (run->stopped) /* a launcher that does not end what it started */
		gt_collector_kill(&run->collector, SIGTERM);
	if (!run->collector.client_count)
		uv_stop(&run->loop);
	else
		uv_timer_start(&run->linger_timer, on_linger_over,
			       target->asked_to_end ? DESCENDANTS_ENDED_MS : DESCENDANTS_MS, 0);
}

static void on_interrupted(struct gt_target *target, int sig)
{
	(void)sig;
	gt_collector_stop(&container_of(target, struct run, target)->collector, "a signal");
}

static bool on_taken(struct gt_target *target, int sig)
{
	struct run *run = container_of(target, struct run, target);

	if (sig != SIGUSR2 || !run->options.schedule.on_demand)
		return false;
	if (!target->over)
		run_control_trigger(&run->control);
	return true;
}

static void on_answered(void *ctx, const struct gt_client_info *client)
{
	gt_trigger_answered(&((struct run *)ctx)->control.trigger, client);
}

static void on_triggered(void *ctx, const struct gt_plan *plan)
{
	run_report_triggered(&((struct run *)ctx)->report, plan);
}

static void on_progress(uv_timer_t *timer)
{
	struct run *run = container_of(timer, struct run, progress_timer);

	run_absent_look(&run->report.absent, &run->collector, uv_now(timer->loop));
	run_report_progress(&run->report, gt_collector_leader(&run->collector));
}

static const struct gt_client_ops client_ops = {
	.phase = on_phase,
	.drained = on_drained,
	.closed = on_closed,
	.log = on_log,
	.failed = on_failed,
	.gone = on_gone,
	.path_for = path_for,
};

static int start_loop(struct run *run, struct gt_err *err)
{
	int rc = uv_loop_init(&run->loop);

	if (rc < 0)
		return gt_err_sys(err, rc, "cannot make a loop");
	run->collector = (struct gt_collector){
		.listen_fd = run->sockdir.listen_fd,
		.ops = &client_ops,
		.ctx = run,
		.recorder = { .schedule = run->options.schedule,
			      .command = run->command,
			      .with_shapes = run->options.with_shapes,
			      .with_flops = run->options.with_flops,
			      .host = run->host,
			      .with_stack = run->options.with_stack,
			      .with_modules = run->options.with_modules,
			      .with_memory = run->options.with_memory,
			      .environment = run->environment },
		.idle = on_idle,
		.answered = on_answered,
	};
	rc = gt_collector_start(&run->collector, &run->loop, err);
	if (rc < 0)
		return rc;
	uv_timer_init(&run->loop, &run->linger_timer);
	uv_timer_init(&run->loop, &run->progress_timer);
	uv_timer_start(&run->progress_timer, on_progress, PROGRESS_MS, PROGRESS_MS);
	run->control.options = &run->options;
	run->control.session = run->session;
	run->control.collector = &run->collector;
	run->control.command = run->command;
	run->control.host = run->host;
	run->control.pid = &run->target.pid;
	run->control.triggered = on_triggered;
	run->control.ctx = run;
	run_control_start(&run->control, &run->loop);
	return 0;
}

static void do_nothing(uv_work_t *work)
{
	(void)work;
}

/* Start the loop and its threads, before the target can take the last descriptor or thread. */
static int start_tracing(struct run *run, struct gt_err *err)
{
	bool given = getenv("UV_THREADPOOL_SIZE");
	char threads[16];
	int rc;

	rc = start_loop(run, err);
	if (rc < 0)
		return rc;
	snprintf(threads, sizeof(threads), "%u", pool_size());
	if (!given)
		setenv("UV_THREADPOOL_SIZE", threads, 1);
	rc = uv_queue_work(&run->loop, &run->first_work, do_nothing, NULL);
	if (!given) /* the command may yet have to run untraced */
		unsetenv("UV_THREADPOOL_SIZE");
	if (rc < 0)
		return gt_err_sys(err, rc, "cannot start threads");
	run->target.signals = &run->signals;
	run->target.witness = &run->witness;
	run->target.ended = on_ended;
	run->target.interrupted = on_interrupted;
	run->target.taken = on_taken;
	return gt_target_start(&run->target, &run->loop, err);
}

static bool is_script(const char *command)
{
	size_t len = strlen(command);

	return len > 3 && !strcmp(command + len - 3, ".py");
}

/* What to do about a command that could not be executed, but for a script. */
static const char *next_step(const char *command, int rc)
{
	struct stat st;

	if (*command == '-')
		return "; options of gtrace stand before --";
	if (rc == -ENOENT && !strchr(command, '/'))
		return "; no directory of PATH has it";
	if (stat(command, &st) < 0 || !S_ISREG(st.st_mode))
		return "";
	if (rc == -ENOENT)
		return "; it is there, but not the interpreter that it names";
	return rc == -EACCES ? "; is it a program? 'chmod +x' makes it one" : "";
}

static void launch(struct run *run)
{
	const char *command = *run->options.command;
	char **environment = run_environment(&run->options, &run->preflight, run->sockdir.path);
	struct gt_launch launched;
	struct gt_err err;
	int rc, sig = gt_signals_take_end(&run->signals);

	if (sig || !environment) {
		clean_up(run);
		gt_signals_die_of(sig);
		die(STATUS_OWN_FAILURE, "run: %s", sig ? "interrupted" : "out of memory");
	}
	if (start_tracing(run, &err) < 0)
		give_up(run, &err);
	rc = gt_launch(&launched, run->options.command, environment, &run->signals, &err);
	gt_environment_free(environment);
	if (!rc) {
		run->target.pid = launched.pid;
		return;
	}
	if (!launched.exec_failed)
		give_up(run, &err);
	clean_up(run);
	die(rc == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE, "run: %s%s%s", err.msg,
	    is_script(command) ? "; a script is for its interpreter: gtrace run -- python "
			       : next_step(command, rc),
	    is_script(command) ? command : "");
}

/* Room for many ranks, now that the target has got the limits as they were. */
static void make_room(void)
{
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static void follow(struct run *run)
{
	uv_run(&run->loop, UV_RUN_DEFAULT);
	run_control_close(&run->control);
	gt_collector_close(&run->collector);
	gt_target_close(&run->target);
	uv_close((uv_handle_t *)&run->linger_timer, NULL);
	uv_close((uv_handle_t *)&run->progress_timer, NULL);
	uv_run(&run->loop, UV_RUN_DEFAULT);
	uv_loop_close(&run->loop);
}

/* End as the target did. */
static int end(const struct run *run)
{
	int sig;

	if (WIFEXITED(run->status))
		return WEXITSTATUS(run->status);
	sig = WTERMSIG(run->status);
	if (run->stopped && sig == SIGTERM)
		return 0;
	gt_signals_die_of(sig);
	return 128 + sig; /* init of a container does not die of signals */
}

int cmd_run(int argc, char **argv)
{
	struct run run = { .report.options = &run.options };
	struct gt_err err;

	run_options_parse(&run.options, argc, argv);
	run_container(&run.options, argv);
	if (run.options.nsight)
		run_nsight(&run.options, argv);
	if (run.options.rendezvous && gt_rendezvous_try(run.options.rendezvous, &err) < 0)
		die(STATUS_OWN_FAILURE,
		    "run: %s; create it or choose another directory with --rendezvous", err.msg);
	gethostname(run.host, sizeof(run.host) - 1);
	open_session(&run);
	run_container_memory(&run.options);
	prepare(&run);
	run.command = join(run.options.command);
	run_environment_notes(run.environment);
	launch(&run);
	make_room();
	follow(&run);
	clean_up(&run);
	run_report_end(&run.report);
	free(run.command);
	return end(&run);
}
