/*
 * check_priv.h - between the files of the check: check.c (the file), check_event.c (an event by
 * itself), check_links.c (launches and their GPU work), check_flows.c (arrows), check_tracks.c
 * (slices of a track, steps).
 */
#ifndef GT_CHECK_PRIV_H
#define GT_CHECK_PRIV_H

#include "check.h"
#include "id_map.h"
#include "interner.h"

enum gt_check_field {
	GT_FIELD_PH,
	GT_FIELD_CAT,
	GT_FIELD_NAME,
	GT_FIELD_PID,
	GT_FIELD_TID,
	GT_FIELD_TS,
	GT_FIELD_DUR,
	GT_FIELD_ARGS,
	GT_FIELD_ID,
	GT_FIELD_BP,
	GT_FIELD_COUNT
};

struct gt_check_event {
	const struct gt_trace_event *event;
	uint64_t number;                   /* from 0 */
	struct gt_str raw[GT_FIELD_COUNT]; /* JSON values; empty: missing */
	uint32_t slice; /* where it stands in slices or points; GT_CHECK_NOWHERE: in none */
};

#define GT_CHECK_NOWHERE UINT32_MAX

struct gt_check_slice {
	int64_t start_ns;
	int64_t end_ns;
	uint32_t track;
	uint32_t event; /* times 2; plus 1: GPU work */
};

struct gt_check_point { /* of an arrow */
	int64_t at_ns;
	uint32_t track;
	uint32_t event; /* times 2; plus 1: its beginning */
	uint32_t link;  /* of an arrow from a launch; GT_CHECK_NOWHERE: of another one */
	bool is_lost;   /* not on the slice it belongs to */
};

/* One launch and its GPU work, by their correlation. */
struct gt_check_link {
	int64_t id;
	int64_t launch_ns;
	int64_t gpu_ns;
	int64_t launch_ext; /* External id; 0: none */
	int64_t gpu_ext;
	uint32_t launch_slice;
	uint32_t gpu_slice; /* the first one; without GPU work that of what waits for the GPU */
	uint32_t gpus;
	uint16_t launches; /* runtime or driver calls; counts saturate */
	uint16_t starts;   /* of arrows */
	uint16_t ends;
	bool is_launch; /* by its name */
	bool is_graph;
	bool is_counted; /* by HTA */
};

struct gt_check_op {
	uint32_t id; /* a hash of its External id */
	uint32_t slice;
};

struct gt_check_links {
	struct gt_id_map numbers; /* by correlation: the index in links */
	struct gt_buf links;      /* struct gt_check_link */
	struct gt_buf ops;        /* struct gt_check_op */
	struct gt_id_map flows;   /* other arrows, by a hash: how many of their ends there are */
	int64_t first_launch_ns;
	int64_t last_gpu_ns;
};

struct gt_check_tracks {
	struct gt_interner names; /* pid and tid, as in the file */
	struct gt_interner pids;
	struct gt_buf slices; /* struct gt_check_slice */
	struct gt_buf points; /* struct gt_check_point */
	struct gt_buf steps;
	int64_t first_ns;
	int64_t last_ns;
};

struct gt_checker {
	struct gt_check *check;
	struct gt_trace_copy *copy;
	struct gt_buf clean;
	uint64_t events;
	uint64_t devices_listed; /* bit n: device n; only those below 64 */
	uint64_t devices_used;
	uint64_t gpu_pids; /* the same of the pids that GPU work and slices of the host have */
	uint64_t host_pids;
	bool saw_devices;
	struct gt_check_links links;
	struct gt_check_tracks tracks;
};

/* Count a breach. event: where; NULL: nowhere. fmt (may be NULL) says more about it. */
void gt_check_add(struct gt_checker *checker, enum gt_check_rule rule,
		  const struct gt_check_event *event, const char *fmt, ...) GT_PRINTF(4, 5);
/* The same count times at an event known by its number. */
void gt_check_add_at(struct gt_checker *checker, enum gt_check_rule rule, uint64_t event,
		     uint64_t count, const char *fmt, ...) GT_PRINTF(5, 6);

/* The findings that flaws of the text are; see json_clean.h. */
void gt_check_flaws(struct gt_checker *checker, const struct gt_check_event *event,
		    unsigned int flaws);

bool gt_check_is_gpu_work(const struct gt_trace_event *event);
bool gt_check_is_on_gpu(const struct gt_trace_event *event); /* also ranges, waits, events */

/* The link with this number. */
struct gt_check_link *gt_check_link_at(struct gt_check_links *links, uint32_t number);
/* 0 and the number of the link of a correlation, GT_CHECK_NOWHERE when there are too many; -ENOMEM.
 */
int gt_check_find_link(struct gt_checker *checker, int64_t correlation, uint32_t *ret);

/* Each returns 0 or -ENOMEM. gt_check_track_event() sets event->slice, which the others need. */
int gt_check_event(struct gt_checker *checker, const struct gt_trace_event *event);
int gt_check_track_event(struct gt_checker *checker, struct gt_check_event *event);
int gt_check_link_event(struct gt_checker *checker, const struct gt_check_event *event);
int gt_check_flow_event(struct gt_checker *checker, const struct gt_check_event *event);

/* The event of a slice for gt_check_add_at(), as long as slices are in the order of the file. */
uint64_t gt_check_event_of(const struct gt_checker *checker, uint32_t slice);

/* When all is read, in this order. */
void gt_check_links_finish(struct gt_checker *checker);
void gt_check_flows_finish(struct gt_checker *checker);
int gt_check_tracks_finish(struct gt_checker *checker); /* 0 or -ENOMEM */
void gt_check_links_release(struct gt_check_links *links);
void gt_check_tracks_release(struct gt_check_tracks *tracks);

#endif
