#include "base.h"
#include "stacks.h"

#include <inttypes.h>
#include <stdlib.h>

/* A peer's names can be 1 MiB each. Those of real programs stay below both. */
#define NAME_MAX_BYTES 4096
#define TEXT_MAX_BYTES (UINT32_C(64) << 10)

static bool grow(struct gt_stacks *stacks, uint32_t id)
{
	uint32_t cap = GT_MAX(stacks->cap, 256u);
	struct gt_frame *grown;

	if (id >= GT_STACKS_MAX)
		return false;
	while (cap <= id)
		cap *= 2;
	grown = realloc(stacks->frames, cap * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + stacks->cap, 0, (cap - stacks->cap) * sizeof(*grown));
	stacks->frames = grown;
	stacks->cap = cap;
	return true;
}

void gt_stacks_add(struct gt_stacks *stacks, const struct gt_ev_frame *ev)
{
	/* So that no stack is a ring. */
	if (ev->outer_id >= ev->id || (ev->id >= stacks->cap && !grow(stacks, ev->id))) {
		stacks->refused++;
		return;
	}
	if (stacks->frames[ev->id].known)
		return;
	stacks->frames[ev->id] = (struct gt_frame){
		.outer_id = ev->outer_id,
		.file_id = ev->file_id,
		.function_id = ev->function_id,
		.line = ev->line,
		.first_line = ev->first_line,
		.class_id = ev->class_id,
		.instance = ev->instance,
		.known = true,
	};
}

const struct gt_frame *gt_stacks_get(const struct gt_stacks *stacks, uint32_t id)
{
	return id < stacks->cap && stacks->frames[id].known ? &stacks->frames[id] : NULL;
}

uint32_t gt_stacks_frames(const struct gt_stacks *stacks, uint32_t id,
			  uint32_t ret[GT_STACK_DEPTH_MAX])
{
	const struct gt_frame *frame;
	uint32_t count = 0, i;

	for (; (frame = gt_stacks_get(stacks, id)) && count < GT_STACK_DEPTH_MAX;
	     id = frame->outer_id)
		ret[count++] = id;
	for (i = 0; i < count / 2; i++) {
		uint32_t inner = ret[i];

		ret[i] = ret[count - 1 - i];
		ret[count - 1 - i] = inner;
	}
	return count;
}

bool gt_frame_same_function(const struct gt_frame *a, const struct gt_frame *b)
{
	return a->function_id == b->function_id && a->file_id == b->file_id &&
	       a->first_line == b->first_line && a->class_id == b->class_id &&
	       a->instance == b->instance;
}

static void put(struct gt_buf *buf, struct gt_str text)
{
	gt_buf_append(buf, text.ptr, GT_MIN(text.len, (size_t)NAME_MAX_BYTES));
}

void gt_frame_put(const struct gt_frame *frame, const struct gt_names *names, uint32_t line,
		  struct gt_buf *buf)
{
	if (!frame->function_id) {
		gt_buf_text(buf, "...(0): outer frames");
		return;
	}
	put(buf, gt_names_get(names, frame->file_id));
	gt_buf_printf(buf, "(%" PRIu32 "): ", line);
	put(buf, gt_names_get(names, frame->function_id));
}

void gt_frame_put_module(const struct gt_frame *frame, const struct gt_names *names,
			 struct gt_buf *buf)
{
	put(buf, gt_names_get(names, frame->class_id));
	gt_buf_printf(buf, "_%" PRIu32, frame->instance);
}

void gt_stacks_put_calls(const struct gt_stacks *stacks, const struct gt_names *names, uint32_t id,
			 struct gt_buf *buf)
{
	static const struct gt_frame left_out;
	const struct gt_frame *frame;
	size_t begin = buf->len;
	uint32_t count = 0;

	for (; (frame = gt_stacks_get(stacks, id)) && count++ < GT_STACK_DEPTH_MAX;
	     id = frame->outer_id) {
		if (buf->len - begin > TEXT_MAX_BYTES)
			frame = &left_out;
		gt_frame_put(frame, names, frame->line, buf);
		gt_buf_byte(buf, ';');
	}
}

void gt_stacks_put_modules(const struct gt_stacks *stacks, const struct gt_names *names,
			   uint32_t id, struct gt_buf *buf)
{
	uint32_t ids[GT_STACK_DEPTH_MAX], count = gt_stacks_frames(stacks, id, ids), i;
	size_t begin = buf->len;

	for (i = 0; i < count && buf->len - begin <= TEXT_MAX_BYTES; i++) {
		const struct gt_frame *frame = gt_stacks_get(stacks, ids[i]);

		if (!gt_frame_is_module(frame))
			continue;
		if (buf->len > begin)
			gt_buf_byte(buf, '.');
		gt_frame_put_module(frame, names, buf);
	}
}

void gt_stacks_release(struct gt_stacks *stacks)
{
	free(stacks->frames);
	*stacks = (struct gt_stacks){ 0 };
}
