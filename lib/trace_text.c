/*
 * The text of the events: room for it, hints for its compression, and what events have in common.
 */
#include "trace_priv.h"

#include <stdlib.h>

#define COMPRESS_BYTES ((size_t)2 << 20) /* at a time */
#define HELD_BYTES     ((size_t)8 << 20) /* the same while it is to wait */

static int reserve_hints(struct gt_trace_part *part, size_t count)
{
	size_t cap = part->hint_cap ? 2 * part->hint_cap : 1024;
	struct gt_deflate_hint *hints;

	if (part->hint_cap - part->hint_count >= count)
		return 0;
	cap = GT_MAX(cap, part->hint_count + count);
	hints = realloc(part->hints, cap * sizeof(*hints));
	if (!hints)
		return -ENOMEM;
	part->hints = hints;
	part->hint_cap = cap;
	return 0;
}

char *gt_trace_begin(struct gt_trace *trace, struct gt_trace_part *part, size_t bytes,
		     gt_trace_spot *spot)
{
	char *p;

	if (trace->error)
		return NULL;
	p = gt_buf_reserve(&part->text, bytes + 3);
	if (!p || reserve_hints(part, GT_TRACE_HINTS_MAX)) {
		trace->error = -ENOMEM;
		return NULL;
	}
	if (spot)
		gt_trace_hint(part, p, spot);
	else
		gt_trace_add_hint(part, p, 0);
	return GT_JSON_PUT(p, "},\n");
}

int gt_trace_end(struct gt_trace *trace, struct gt_trace_part *part, const char *end)
{
	part->text.len = (size_t)(end - part->text.data);
	trace->events++;
	if (trace->main.text.len - trace->compressed + trace->gpu.text.len <
	    (trace->held ? HELD_BYTES : COMPRESS_BYTES))
		return 0;
	return gt_trace_compress(trace);
}

/* Put the GPU's part behind the main one. */
static int join_parts(struct gt_trace *trace)
{
	struct gt_trace_part *main = &trace->main, *gpu = &trace->gpu;
	uint32_t shift = (uint32_t)main->text.len;
	size_t i;

	if (reserve_hints(main, gpu->hint_count))
		return -ENOMEM;
	gt_buf_append(&main->text, gpu->text.data, gpu->text.len);
	if (main->text.failed)
		return -ENOMEM;
	for (i = 0; i < gpu->hint_count; i++) {
		main->hints[main->hint_count] = gpu->hints[i];
		main->hints[main->hint_count++].at += shift;
	}
	gpu->start += gpu->text.len;
	gpu->text.len = 0;
	gpu->hint_count = 0;
	return 0;
}

int gt_trace_compress(struct gt_trace *trace)
{
	struct gt_buf *text = &trace->main.text;
	size_t drop;
	int code = join_parts(trace);

	if (!code)
		code = gt_gz_writer_append(trace->gz, text->data, trace->compressed, text->len,
					   trace->main.hints, trace->main.hint_count);
	trace->unflushed += text->len - trace->compressed;
	trace->main.hint_count = 0;
	/* Keep as much as matches can reach. */
	drop = gt_sub(text->len, GT_DEFLATE_WINDOW);
	memmove(text->data, text->data + drop, text->len - drop);
	text->len -= drop;
	trace->main.start += drop;
	trace->compressed = text->len;
	if (!trace->error)
		trace->error = code;
	return trace->error;
}

void gt_trace_forget_text(struct gt_trace *trace)
{
	trace->main.start += trace->main.text.len;
	trace->main.text.len = 0;
	trace->compressed = 0;
	trace->unflushed = 0;
}

bool gt_trace_times(struct gt_trace *trace, uint64_t start_ns, uint64_t end_ns, uint64_t *ret_start,
		    uint64_t *ret_end)
{
	uint64_t start = GT_MAX(start_ns, trace->base_ns) - trace->base_ns;
	uint64_t end = GT_MAX(end_ns, trace->base_ns) - trace->base_ns;

	if (start > GT_TRACE_TIME_MAX_NS || end > GT_TRACE_TIME_MAX_NS) {
		trace->refused++;
		return false;
	}
	*ret_start = start;
	*ret_end = GT_MAX(start, end);
	return true;
}

char *gt_trace_put_name(char *p, struct gt_str name, bool is_step)
{
	*p++ = '"';
	if (!is_step && gt_str_starts(name, GT_STR("ProfilerStep")))
		*p++ = ' ';
	p = gt_json_put_chars(p, name);
	*p++ = '"';
	return p;
}

char *gt_trace_put_place(char *p, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	p = GT_TRACE_PUT_NUMBER(p, "pid", pid);
	p = GT_TRACE_PUT_NUMBER(p, "tid", tid);
	return gt_json_put_us(GT_JSON_PUT(p, ",\"ts\":"), time_ns);
}
