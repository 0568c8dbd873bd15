/*
 * thread_ids.c - see thread_ids.h.
 */
#include "base.h"
#include "buf.h"
#include "thread_ids.h"

static void put_id(struct gt_buf *key, const struct gt_trace_id *id)
{
	gt_buf_append(key, &id->text.len, sizeof(id->text.len));
	if (id->text.ptr)
		gt_buf_append(key, id->text.ptr, id->text.len);
	else
		gt_buf_append(key, &id->number, sizeof(id->number));
}

uint32_t gt_thread_find(struct gt_thread_ids *threads, const struct gt_trace_event *event)
{
	struct gt_buf key = { 0 };
	uint32_t number;

	put_id(&key, &event->pid);
	put_id(&key, &event->tid);
	number = key.failed ? GT_INTERN_FAILED : gt_intern(&threads->ids, gt_buf_str(&key));
	gt_buf_release(&key);
	if (number == GT_INTERN_FAILED)
		return number;
	threads->last_known = !event->pid.text.ptr && !event->tid.text.ptr;
	threads->last_pid = event->pid.number;
	threads->last_tid = event->tid.number;
	threads->last = number;
	return number;
}

void gt_thread_ids_release(struct gt_thread_ids *threads)
{
	gt_interner_release(&threads->ids);
	memset(threads, 0, sizeof(*threads));
}
