/*
 * cut.c - see cut.h.
 */
#include "base.h"
#include "cut.h"
#include "safe_text.h"

struct cutter {
	struct gt_selection selection;
	struct gt_trace_copy *copy;
};

static int copy_event(void *context, const struct gt_trace_event *event)
{
	struct cutter *cutter = context;
	unsigned int flaws = 0;

	return gt_selection_takes(&cutter->selection, event)
		       ? gt_trace_copy_event(cutter->copy, event->text, &flaws)
		       : 0;
}

static int copy_member(void *context, struct gt_str key, struct gt_str raw)
{
	struct cutter *cutter = context;
	unsigned int flaws = 0;

	return gt_trace_copy_member(cutter->copy, key, raw, &flaws);
}

static int copy_trace(struct cutter *cutter, const char *path, struct gt_cut_result *ret,
		      struct gt_err *err)
{
	struct gt_trace_hooks hooks = { cutter, copy_event, copy_member };
	struct gt_gz_reader *gz;
	int rc = gt_gz_open(&gz, path, err);

	if (rc)
		return rc;
	err->code = 0;
	rc = gt_trace_read(gz, &hooks, &ret->read, err);
	ret->gz = *gt_gz_status(gz);
	gt_gz_close(gz);
	ret->events = ret->read.events;
	ret->kept = gt_trace_copy_events(cutter->copy);
	if (rc == -ENOMEM)
		return gt_err_set(err, rc, "out of memory");
	if (rc && !err->code)
		return gt_err_sys(err, rc, "cannot write the copy");
	return rc;
}

int gt_cut(const char *path, const struct gt_choice *choice, struct gt_trace_copy *copy,
	   struct gt_cut_result *ret, struct gt_err *err)
{
	struct cutter cutter = { .copy = copy };
	int rc;

	memset(ret, 0, sizeof(*ret));
	gt_selection_init(&cutter.selection, choice);
	rc = gt_selection_find(&cutter.selection, path, err);
	if (!rc)
		rc = gt_selection_check(&cutter.selection, err);
	if (!rc)
		rc = copy_trace(&cutter, path, ret, err);
	if (cutter.selection.has_span)
		ret->span_ns =
			(uint64_t)cutter.selection.to_ns - (uint64_t)cutter.selection.from_ns;
	gt_selection_release(&cutter.selection);
	return rc;
}

int gt_cut_print_about(const struct gt_choice *choice, const struct gt_cut_result *result,
		       const struct gt_trace_copy *copy, struct gt_buf *out)
{
	gt_buf_printf(out,
		      "{\"by\":\"gtrace " GT_VERSION "\",\"what\":\"cut\",\"events\":%llu,"
		      "\"of_events\":%llu",
		      (unsigned long long)result->kept, (unsigned long long)result->events);
	if (choice->has_steps)
		gt_buf_printf(out, ",\"steps\":[%lld,%lld]", (long long)choice->first_step,
			      (long long)choice->last_step);
	if (choice->has_time)
		gt_buf_printf(out, ",\"time_ns\":[%lld,%lld]", (long long)choice->from_ns,
			      (long long)choice->to_ns);
	if (choice->device >= 0)
		gt_buf_printf(out, ",\"device\":%lld", (long long)choice->device);
	if (choice->categories) {
		gt_buf_text(out, ",\"categories\":");
		gt_safe_put_json(out, gt_str_of(choice->categories));
	}
	gt_trace_copy_put_origin(copy, out);
	gt_buf_byte(out, '}');
	return out->failed ? -ENOMEM : 0;
}
