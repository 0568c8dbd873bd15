/*
 * trace_copy.c - see trace_copy.h. Members that come behind the first event wait in memory for the
 * end: traceEvents may go on behind them.
 */
#include "base.h"
#include "json_clean.h"
#include "json_reader.h"
#include "out_file.h"
#include "trace_copy.h"

#include <stdlib.h>

#define TAIL_MAX ((size_t)32 << 20) /* of the members that wait */

struct gt_trace_copy {
	struct gt_out_file *out;
	int error; /* -errno, sticks */
	bool has_members;
	uint64_t events;
	uint64_t lost;
	struct gt_buf text;
	struct gt_buf tail;
	struct gt_buf origin; /* ,"of": what the file says that it is a copy of */
};

int gt_trace_copy_create(struct gt_trace_copy **ret, const char *path, bool overwrite,
			 struct gt_err *err)
{
	struct gt_trace_copy *copy = calloc(1, sizeof(*copy));
	int rc;

	if (!copy)
		return gt_err_set(err, -ENOMEM, "out of memory");
	rc = gt_out_file_create(&copy->out, path, overwrite, err);
	if (rc) {
		free(copy);
		return rc;
	}
	*ret = copy;
	return 0;
}

void gt_trace_copy_close(struct gt_trace_copy *copy)
{
	if (!copy)
		return;
	gt_out_file_close(copy->out);
	gt_buf_release(&copy->text);
	gt_buf_release(&copy->tail);
	gt_buf_release(&copy->origin);
	free(copy);
}

uint64_t gt_trace_copy_events(const struct gt_trace_copy *copy)
{
	return copy->events;
}

uint64_t gt_trace_copy_lost(const struct gt_trace_copy *copy)
{
	return copy->lost;
}

/* Add a member behind comma; false: it is no JSON. */
static bool put_member(struct gt_buf *out, const char *comma, struct gt_str key, struct gt_str raw,
		       unsigned int *flaws)
{
	size_t start = out->len;

	gt_buf_text(out, comma);
	if (gt_json_clean_member(key, raw, out, flaws))
		return true;
	out->len = start;
	return false;
}

static int write_text(struct gt_trace_copy *copy)
{
	if (copy->text.failed)
		copy->error = -ENOMEM;
	if (!copy->error)
		copy->error = gt_out_file_write(copy->out, gt_buf_str(&copy->text));
	copy->text.len = 0;
	return copy->error;
}

static void keep_origin(struct gt_trace_copy *copy, struct gt_str raw, unsigned int *flaws)
{
	copy->origin.len = 0;
	gt_buf_text(&copy->origin, ",\"of\": ");
	if (!gt_json_clean(raw, &copy->origin, flaws)) {
		copy->origin.len = 0;
		copy->lost++;
	}
	if (copy->origin.failed)
		copy->error = -ENOMEM;
}

int gt_trace_copy_member(struct gt_trace_copy *copy, struct gt_str key, struct gt_str raw,
			 unsigned int *flaws)
{
	char plain[GT_JSON_KEY_MAX];
	struct gt_str name = gt_json_key(key, plain);

	if (gt_str_equal(name, GT_STR("traceEvents")))
		return copy->error;
	if (gt_str_equal(name, GT_STR("gtrace_copy"))) {
		keep_origin(copy, raw, flaws);
		return copy->error;
	}
	if (copy->events) {
		if (copy->tail.len > TAIL_MAX || !put_member(&copy->tail, ",\n", key, raw, flaws))
			copy->lost++;
		if (copy->tail.failed)
			copy->error = -ENOMEM;
		return copy->error;
	}
	if (!put_member(&copy->text, copy->has_members ? ",\n" : "{\n", key, raw, flaws)) {
		copy->lost++;
		return copy->error;
	}
	copy->has_members = true;
	return write_text(copy);
}

static void begin_events(struct gt_trace_copy *copy)
{
	gt_buf_text(&copy->text, copy->has_members ? ",\n" : "{\n");
	gt_buf_text(&copy->text, "\"traceEvents\": [\n");
}

int gt_trace_copy_event(struct gt_trace_copy *copy, struct gt_str raw, unsigned int *flaws)
{
	if (copy->events)
		gt_buf_text(&copy->text, ",\n");
	else
		begin_events(copy);
	if (!gt_json_clean(raw, &copy->text, flaws)) {
		copy->lost++;
		copy->text.len = 0;
		return write_text(copy);
	}
	copy->events++;
	return write_text(copy);
}

void gt_trace_copy_put_origin(const struct gt_trace_copy *copy, struct gt_buf *out)
{
	gt_buf_append(out, copy->origin.data, copy->origin.len);
}

int gt_trace_copy_commit(struct gt_trace_copy *copy, struct gt_str about, struct gt_err *err)
{
	if (!copy->events)
		begin_events(copy);
	gt_buf_text(&copy->text, "\n]");
	gt_buf_append(&copy->text, copy->tail.data, copy->tail.len);
	gt_buf_text(&copy->text, ",\n\"gtrace_copy\": ");
	gt_buf_append(&copy->text, about.ptr, about.len);
	gt_buf_text(&copy->text, "}\n");
	if (write_text(copy) == -ENOMEM)
		return gt_err_set(err, -ENOMEM, "out of memory");
	return gt_out_file_commit(copy->out, err);
}
