#include "base.h"
#include "choice.h"
#include "json_reader.h"

static bool read_step(struct gt_str side, int64_t *ret)
{
	for (size_t i = 0; i < side.len; i++) {
		if (side.ptr[i] < '0' || side.ptr[i] > '9')
			return false;
	}
	return gt_json_int(side, ret);
}

bool read_sides(const char *text, bool (*read)(struct gt_str side, int64_t *ret), int64_t *ret_from,
		int64_t *ret_to)
{
	const char *colon = strchr(text, ':');
	struct gt_str from = { text, colon ? (size_t)(colon - text) : strlen(text) };
	struct gt_str to = colon ? gt_str_of(colon + 1) : from;

	if (!from.len && !to.len)
		return false;
	return (!from.len || read(from, ret_from)) && (!to.len || read(to, ret_to)) &&
	       *ret_from <= *ret_to;
}

bool read_steps(const char *text, struct gt_choice *choice)
{
	choice->has_steps = true;
	choice->first_step = 0;
	choice->last_step = INT64_MAX;
	return read_sides(text, read_step, &choice->first_step, &choice->last_step);
}
