/*
 * run_report.h - what gtrace run tells its user: three short lines while it traces, every loss, and
 * at the end the files or why there are none.
 */
#ifndef CMD_RUN_REPORT_H
#define CMD_RUN_REPORT_H

#include "base.h"
#include "client.h"
#include "run_absent.h"
#include "run_options.h"

struct run_file {
	char *path;
	uint32_t rank;
	uint64_t cycle;
	bool stepless; /* though steps were looked for */
	bool bounded;  /* as in struct gt_recorder_closed */
};

struct run_report {
	const struct run_options *options;
	bool said_attached;
	bool triggered; /* a window, on demand */
	bool said_open;
	bool said_complete;
	uint64_t said_cut;       /* cycle; 0: none */
	bool said_left_out;      /* a window, for the program's own profiler */
	bool said_failure;       /* why a process is not traced or its file not written */
	uint64_t quiet_since_ns; /* a GPU process was seen, but no step yet; 0: neither */
	/* The process whose first window is open, but on which GPU is not known yet; 0: none. */
	uint64_t open_client;
	struct gt_msg_phase open;
	struct run_absent absent;
	/* over all processes */
	struct run_file *files; /* complete ones */
	size_t file_count;
	uint64_t clients;
	uint64_t gpu_clients; /* of these initialised CUDA */
	uint32_t last_step;
	enum gt_step_source step_source; /* the highest that ruled */
};

/* As in struct gt_client_ops. */
void run_report_phase(struct run_report *report, const struct gt_client_info *client,
		      const struct gt_msg_phase *phase);
void run_report_drained(struct run_report *report, const struct gt_client_info *client);
void run_report_closed(struct run_report *report, const struct gt_client_info *client,
		       const struct gt_recorder_closed *closed);
void run_report_log(struct run_report *report, const struct gt_client_info *client,
		    enum gt_log_level level, const char *text, size_t len);
void run_report_gone(struct run_report *report, const struct gt_client_info *client);

/* There will be another window, of which the lines are to tell, too. */
void run_report_triggered(struct run_report *report, const struct gt_plan *plan);

/* The live line: where the leading process is in the schedule. leader may be NULL. */
void run_report_progress(struct run_report *report, const struct gt_client_info *leader);

/* The last words; frees what the report holds. */
void run_report_end(struct run_report *report);

#endif
