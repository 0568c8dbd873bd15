/*
 * summary_ranks.c - see summary_ranks.h.
 */
#include "base.h"
#include "summary_priv.h"
#include "summary_ranks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS_MAX 256

struct work {
	struct gt_rank_row *rows;
	size_t count;
	int64_t rank; /* -1: all */
	atomic_size_t next;
	atomic_bool failed; /* out of memory */
};

/* NULL: out of memory. */
static char *why_incomplete(const struct gt_summary *summary)
{
	struct gt_str reason = gt_buf_str(&summary->own.reason);
	struct gt_buf text = { 0 };
	char *why;

	gt_buf_printf(&text, "the %strace is not complete",
		      summary->copy.kind == GT_COPY_CUT ? "whole " : "");
	gt_buf_text(&text, reason.len ? ": " : "");
	gt_buf_append(&text, reason.ptr, reason.len);
	why = text.failed ? NULL : strndup(text.data, text.len);
	gt_buf_release(&text);
	return why;
}

static int fill_row(struct gt_rank_row *row, const struct gt_summary *summary)
{
	row->is_lossy = gt_summary_is_lossy(summary);
	row->is_own = summary->own.present;
	if (row->is_own && !summary->own.complete) {
		row->why = why_incomplete(summary);
		if (!row->why)
			return -ENOMEM;
	}
	row->rank = summary->rank;
	row->world_size = summary->world_size;
	row->events = summary->read.events;
	row->gpu_count = summary->gpu_count;
	for (size_t i = 0; i < summary->gpu_count; i++)
		gt_gpu_time_add(&row->gpu, &summary->gpus[i].time);
	gt_summary_put_gpus_json(summary, &row->gpus);
	return row->gpus.failed ? -ENOMEM : gt_summary_step_range(summary, &row->steps);
}

static int load_row(struct gt_rank_row *row)
{
	const struct gt_summary_options options = { .no_operators = true };
	struct gt_summary *summary;
	struct gt_err err;
	int rc;

	row->rank = -1;
	row->rc = gt_summary_load(&summary, row->path, &options, &err);
	if (row->rc) {
		row->why = strdup(err.msg);
		return row->why && row->rc != -ENOMEM ? 0 : -ENOMEM;
	}
	rc = fill_row(row, summary);
	gt_summary_free(summary);
	return rc;
}

static void *load_rows(void *context)
{
	struct work *work = context;
	size_t i;

	while (!work->failed && (i = atomic_fetch_add(&work->next, 1)) < work->count) {
		if (load_row(&work->rows[i]))
			work->failed = true;
	}
	return NULL;
}

/* Processors that this process may use. */
static size_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1; /* more than a cpu_set_t has */
	return (size_t)GT_MAX(CPU_COUNT(&set), 1);
}

/* This thread works, too: without others, it does all. */
static int load_all(struct work *work)
{
	size_t wanted = GT_MIN(GT_MIN(processors(), work->count), (size_t)THREADS_MAX), started = 0;
	pthread_t threads[THREADS_MAX];

	while (started + 1 < wanted && !pthread_create(&threads[started], NULL, load_rows, work))
		started++;
	load_rows(work);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return work->failed ? -ENOMEM : 0;
}

/* ---- verdict --------------------------------------------------------------------------------- */

/* Files without a rank behind those with one, what cannot be read last; else in their order. */
static int by_rank(const void *a, const void *b)
{
	const struct gt_rank_row *l = a, *r = b;

	if (!l->rc != !r->rc)
		return l->rc ? 1 : -1;
	if (l->rank != r->rank && (l->rank < 0 || r->rank < 0))
		return l->rank < 0 ? 1 : -1;
	if (l->rank != r->rank)
		return l->rank < r->rank ? -1 : 1;
	return strverscmp(l->path, r->path);
}

static uint64_t duration(const struct gt_rank_row *row, bool by_step)
{
	return by_step ? row->steps.median : row->gpu.span_ns;
}

static void find_slowest(struct gt_summary_ranks *ranks)
{
	bool by_step = false, communicate = true;

	for (size_t i = 0; i < ranks->readable; i++)
		by_step |= ranks->rows[i].steps.count > 0;
	for (size_t i = 0; i < ranks->readable; i++) {
		const struct gt_rank_row *row = &ranks->rows[i];

		if (duration(row, by_step) &&
		    (!ranks->slowest || duration(row, by_step) > duration(ranks->slowest, by_step)))
			ranks->slowest = row;
		communicate &= row->gpu.comm_ns > 0;
		if (!ranks->waited_for ||
		    row->gpu.exposed_comm_ns < ranks->waited_for->gpu.exposed_comm_ns)
			ranks->waited_for = row;
	}
	if (!communicate || ranks->readable < 2)
		ranks->waited_for = NULL;
	if (ranks->readable < 2)
		ranks->slowest = NULL;
}

static void find_gaps(struct gt_summary_ranks *ranks)
{
	int64_t world_size = 0, next = 0;

	for (size_t i = 0; i < ranks->readable; i++)
		world_size = GT_MAX(world_size, ranks->rows[i].world_size);
	for (size_t i = 0; i < ranks->readable && ranks->rows[i].rank >= 0; i++) {
		int64_t rank = ranks->rows[i].rank;

		if (i && rank == ranks->rows[i - 1].rank) {
			ranks->first_twice = ranks->twice++ ? ranks->first_twice : rank;
			continue;
		}
		if (rank > next && next < world_size) {
			ranks->first_missing = ranks->missing ? ranks->first_missing : next;
			ranks->missing += (uint64_t)(GT_MIN(rank, world_size) - next);
		}
		next = rank < INT64_MAX ? rank + 1 : rank;
	}
	if (next && next < world_size) {
		ranks->first_missing = ranks->missing ? ranks->first_missing : next;
		ranks->missing += (uint64_t)(world_size - next);
	}
}

static void free_row(struct gt_rank_row *row)
{
	gt_buf_release(&row->gpus);
	free(row->why);
}

/* Only the rows of this rank remain. */
static void keep_rank(struct gt_summary_ranks *ranks, int64_t rank)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranks->count; i++) {
		if (ranks->rows[i].rank == rank)
			ranks->rows[kept++] = ranks->rows[i];
		else
			free_row(&ranks->rows[i]);
	}
	ranks->count = kept;
}

int gt_summary_ranks_load(struct gt_summary_ranks **ret, const struct gt_trace_files *files,
			  int64_t rank, struct gt_err *err)
{
	struct gt_summary_ranks *ranks = calloc(1, sizeof(*ranks));
	struct work work = { .count = files->count };

	if (ranks)
		ranks->rows = calloc(files->count + 1, sizeof(*ranks->rows));
	if (!ranks || !ranks->rows) {
		free(ranks);
		return gt_err_set(err, -ENOMEM, "out of memory");
	}
	ranks->count = files->count;
	for (size_t i = 0; i < files->count; i++)
		ranks->rows[i].path = files->paths[i];
	work.rows = ranks->rows;
	if (load_all(&work)) {
		gt_summary_ranks_free(ranks);
		return gt_err_set(err, -ENOMEM, "out of memory");
	}
	if (rank >= 0)
		keep_rank(ranks, rank);
	qsort(ranks->rows, ranks->count, sizeof(*ranks->rows), by_rank);
	while (ranks->readable < ranks->count && !ranks->rows[ranks->readable].rc)
		ranks->readable++;
	find_slowest(ranks);
	if (rank < 0)
		find_gaps(ranks);
	*ret = ranks;
	return 0;
}

void gt_summary_ranks_free(struct gt_summary_ranks *ranks)
{
	if (!ranks)
		return;
	for (size_t i = 0; i < ranks->count; i++)
		free_row(&ranks->rows[i]);
	free(ranks->rows);
	free(ranks);
}

const char *gt_rank_row_problem(const struct gt_rank_row *row)
{
	return row->is_lossy ? "cut or damaged, only a part was used" : row->why;
}

bool gt_summary_ranks_is_lossy(const struct gt_summary_ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++) {
		if (ranks->rows[i].rc || ranks->rows[i].is_lossy)
			return true;
	}
	return false;
}
