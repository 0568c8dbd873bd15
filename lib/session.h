/*
 * session.h - one run and its files: where they go and what they are called.
 */
#ifndef GT_SESSION_H
#define GT_SESSION_H

#include "base.h"
#include "err.h"
#include "job.h"

struct gt_session;

#define GT_SESSION_NAME_MAX 200 /* bytes of the part of a file's name before "-rank" */
#define GT_SESSION_HOST_MAX 64  /* bytes of HOST; longer ones are cut */

struct gt_session_config {
	const char *dir;
	const char *name;
	bool cycles; /* all names carry "-cycleC", not only those from the second on */
	bool force;  /* files may be overwritten */
	/*
	 * NULL: a file is DIR/NAME-rankR.trace.json.gz. Else the name of this machine, and files
	 * are as TensorBoard's plug-in looks for them: DIR/NAME/HOST_rankR.MS.pt.trace.json.gz, MS
	 * being the time.
	 */
	const char *tensorboard_host;
	/*
	 * Of gtrace's own environment. With a rank in it, a launcher started a gtrace for each one,
	 * or one on each machine: those of a job have one name.
	 */
	struct gt_job job;
};

/* 0, or -EINVAL when name cannot be part of a file's name. */
int gt_session_check_name(const char *name, struct gt_err *err);

/*
 * Check that dir takes files and choose the name: config->name, or with "-2", "-3", … where it has
 * traces already and force is not set. The first gtrace of a job chooses, the others take what it
 * has. The name is held against other runs until the session is freed or this process ends. 0 or
 * -errno.
 */
int gt_session_open(struct gt_session **ret, const struct gt_session_config *config,
		    struct gt_err *err);

/* What to do about a directory that cannot be used, or takes no more, for this reason: one line. */
const char *gt_session_advice(int code);

/* The name chosen. Borrowed. */
const char *gt_session_name(const struct gt_session *session);

/*
 * Path of the trace of this process and cycle (from 1), into buf. client tells the processes of the
 * session apart (a process that executes another program keeps its pid): the first one of a rank
 * that asks has the plain name, later ones have their pid in it. Where other gtraces of the job
 * write to dir, too, nothing is there yet: whoever makes the file has it, others ask again.
 * *overwrite: the trace may replace what is there. Any thread. 0 or -errno.
 */
int gt_session_path(struct gt_session *session, uint64_t client, uint32_t rank, uint32_t pid,
		    uint64_t cycle, char *buf, size_t len, bool *overwrite, struct gt_err *err);

void gt_session_free(struct gt_session *session);

#endif
