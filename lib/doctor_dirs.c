/*
 * doctor_dirs.c - the directories that a run writes to, and who this user is.
 */
#include "base.h"
#include "control_socket.h"
#include "doctor.h"
#include "session.h"
#include "sockdir.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

static void try_socket(struct gt_doctor *doctor)
{
	const char *bases[GT_SOCKDIR_BASES];
	struct gt_sockdir sockdir;
	struct gt_err err;

	gt_sockdir_bases(getenv, bases);
	if (gt_sockdir_open(&sockdir, bases, ARRAY_SIZE(bases), &err) < 0) {
		gt_doctor_add(doctor, "dir.socket", GT_DOCTOR_PROBLEM, "%s", err.msg);
		gt_doctor_fix(doctor,
			      "set TMPDIR to a directory on a local disk that can be written; in a "
			      "container --tmpfs /tmp");
		return;
	}
	gt_doctor_add(doctor, "dir.socket", GT_DOCTOR_OK, "%.*s",
		      (int)(strrchr(sockdir.dir, '/') - sockdir.dir), sockdir.dir);
	gt_sockdir_close(&sockdir);
}

static void try_sessions(struct gt_doctor *doctor)
{
	struct gt_control control = { .ctx = NULL }; /* nobody asks: the loop runs to close it */
	struct gt_err err;
	uv_loop_t loop;
	int rc;

	if (uv_loop_init(&loop) < 0)
		return;
	rc = gt_control_open(&control, &loop, getenv, &err);
	if (rc < 0) {
		gt_doctor_add(doctor, "dir.sessions", GT_DOCTOR_WARNING,
			      "%s; gtrace ps, trigger and stop will not find what runs here",
			      err.msg);
		gt_doctor_fix(doctor, "set GTRACE_RUNTIME_DIR to a directory of yours on a local "
				      "disk");
	} else {
		gt_doctor_add(doctor, "dir.sessions", GT_DOCTOR_OK, "%.*s",
			      (int)(strrchr(control.path, '/') - control.path), control.path);
		gt_control_close(&control);
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	uv_loop_close(&loop);
}

static void try_output(struct gt_doctor *doctor)
{
	struct gt_session_config config = { .dir = doctor->output_dir, .name = "gtrace-doctor" };
	struct gt_session *session;
	struct gt_err err;

	if (gt_session_open(&session, &config, &err) < 0) {
		gt_doctor_add(doctor, "dir.output", GT_DOCTOR_PROBLEM, "%s", err.msg);
		gt_doctor_fix(doctor, "%s", gt_session_advice(err.code));
		return;
	}
	gt_session_free(session);
	gt_doctor_add(doctor, "dir.output", GT_DOCTOR_OK, "%s takes traces", doctor->output_dir);
}

/* Gtrace asks for no name; PyTorch's compiler does, by getpass.getuser(). */
static void look_at_user(struct gt_doctor *doctor)
{
	if (getpwuid(geteuid()) || getenv("LOGNAME") || getenv("USER"))
		return;
	gt_doctor_add(doctor, "user.passwd", GT_DOCTOR_WARNING,
		      "user %u has no name: gtrace needs none, but torch.compile and others fail",
		      (unsigned int)geteuid());
	gt_doctor_fix(doctor,
		      "export USER=me HOME=/tmp; in a container -v /etc/passwd:/etc/passwd:ro");
}

void gt_doctor_directories(struct gt_doctor *doctor)
{
	try_socket(doctor);
	try_sessions(doctor);
	try_output(doctor);
	look_at_user(doctor);
}
