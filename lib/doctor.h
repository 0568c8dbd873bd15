/*
 * doctor.h - what on this machine helps or hinders tracing: findings, each with its level and,
 * where there is something to do, the fix.
 */
#ifndef GT_DOCTOR_H
#define GT_DOCTOR_H

#include "base.h"
#include "buf.h"
#include "child.h"
#include "preflight.h"
#include "signals.h"

#include <limits.h>

enum gt_doctor_level {
	GT_DOCTOR_OK,
	GT_DOCTOR_WARNING, /* tracing works, but less well or not for all */
	GT_DOCTOR_PROBLEM  /* there will be no trace */
};

struct gt_finding {
	const char *name; /* "gpu.driver": gtrace-doctor.1 lists them */
	enum gt_doctor_level level;
	struct gt_buf text; /* one line, any bytes */
	struct gt_buf fix;  /* the same; empty: there is nothing to do */
};

enum gt_doctor_gpu { GT_DOCTOR_GPU_NONE, GT_DOCTOR_GPU_BROKEN, GT_DOCTOR_GPU_WORKS };

struct gt_doctor { /* { 0 } but for the first ones */
	struct gt_signals *signals;
	int timeout_ms;        /* of each child */
	const char *root;      /* where /proc, /sys and /dev are looked for; "" unless in a test */
	const char *python;    /* the interpreter to look at */
	bool python_is_wanted; /* rather than looked for */
	const char *output_dir;

	int signal;  /* asked this process to end; the rest was not looked at */
	bool failed; /* out of memory */
	struct gt_finding *findings;
	size_t count;

	/* what one part finds and another needs */
	struct gt_preflight preflight; /* injection[0] = 0: not found */
	enum gt_doctor_gpu gpu;
	uint32_t driver_version;      /* cuDriverGetVersion(); 0: not known */
	char torch_library[PATH_MAX]; /* in the directory of torch's libraries; empty: no torch */
};

/* Add a finding; what to do about it comes behind it. */
void gt_doctor_add(struct gt_doctor *doctor, const char *name, enum gt_doctor_level level,
		   const char *fmt, ...) GT_PRINTF(4, 5);
void gt_doctor_fix(struct gt_doctor *doctor, const char *fmt, ...) GT_PRINTF(2, 3);

/* gt_child_run() with what the doctor has; false: it could not be run, which has been said. */
bool gt_doctor_child(struct gt_doctor *doctor, const char *name, struct gt_child *ret,
		     int (*body)(void *ctx), void *ctx);

/* The next line of what it wrote, without its end; *at begins with 0. False: there is no more. */
bool gt_doctor_line(const struct gt_child *child, size_t *at, struct gt_str *ret);

/* The value of "key value" in a child's lines, NULL-terminated in ret; false: there is none. */
bool gt_doctor_value(const struct gt_child *child, const char *key, char *ret, size_t len);

/* The parts, in the order in which they build on each other. */
void gt_doctor_injection(struct gt_doctor *doctor);   /* doctor_tools.c */
void gt_doctor_tools(struct gt_doctor *doctor);       /* doctor_tools.c */
void gt_doctor_limits(struct gt_doctor *doctor);      /* doctor_limits.c */
void gt_doctor_container(struct gt_doctor *doctor);   /* doctor_limits.c */
void gt_doctor_directories(struct gt_doctor *doctor); /* doctor_dirs.c */
void gt_doctor_python(struct gt_doctor *doctor);      /* doctor_python.c */
void gt_doctor_gpu(struct gt_doctor *doctor);         /* doctor_gpu.c */
void gt_doctor_cupti(struct gt_doctor *doctor);       /* doctor_cupti.c */

/* Exit status of that program: others have the GPU, and there is no room for it. */
#define GT_DOCTOR_GPU_TAKEN 4

/* Run a small program under 'gtrace run', and look into its trace. doctor_trace.c */
void gt_doctor_trace(struct gt_doctor *doctor);

/* No problem among the findings. */
bool gt_doctor_is_well(const struct gt_doctor *doctor);

/* Append the verdict and the findings. 0 or -ENOMEM. */
int gt_doctor_print(const struct gt_doctor *doctor, bool colours, struct gt_buf *out);
int gt_doctor_print_json(const struct gt_doctor *doctor, struct gt_buf *out);

void gt_doctor_release(struct gt_doctor *doctor);

#endif
