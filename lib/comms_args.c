#include "base.h"
#include "comms_args.h"

#include "json_writer.h"

#include <inttypes.h>

/* c10::toString(c10::ScalarType), of torch/headeronly/core/ScalarType.h */
static const char *type_name(uint8_t type)
{
	static const char *const names[] = {
		"Byte",
		"Char",
		"Short",
		"Int",
		"Long",
		"Half",
		"Float",
		"Double",
		"ComplexHalf",
		"ComplexFloat",
		"ComplexDouble",
		"Bool",
		"QInt8",
		"QUInt8",
		"QInt32",
		"BFloat16",
		"QUInt4x2",
		"QUInt2x4",
		"Bits1x8",
		"Bits2x4",
		"Bits4x2",
		"Bits8",
		"Bits16",
		"Float8_e5m2",
		"Float8_e4m3fn",
		"Float8_e5m2fnuz",
		"Float8_e4m3fnuz",
		"UInt16",
		"UInt32",
		"UInt64",
	};

	return type < ARRAY_SIZE(names) ? names[type] : NULL;
}

static void put_text(struct gt_buf *args, const char *key, struct gt_str text)
{
	char *p;

	gt_buf_printf(args, ",\"%s\":", key);
	p = gt_buf_reserve(args, GT_JSON_STR_MAX(text.len));
	if (p)
		args->len += (size_t)(gt_json_put_str(p, text) - p);
}

/* A list is a string there; of a long one the first and the last are shown. */
static void put_list(struct gt_buf *args, const char *key, const int64_t *numbers, uint16_t count)
{
	const char *before = "";
	uint16_t i;

	gt_buf_printf(args, ",\"%s\":\"[", key);
	for (i = 0; i < count && i < GT_COMMS_LIST_MAX; i++, before = ", ") {
		if (i == GT_COMMS_LIST_MAX - 1 && count > GT_COMMS_LIST_MAX)
			before = ", ..., ";
		gt_buf_printf(args, "%s%" PRId64, before, numbers[i]);
	}
	gt_buf_text(args, "]\"");
}

static struct gt_str take(const char **chars, uint16_t bytes)
{
	struct gt_str text = { *chars, bytes };

	*chars += bytes;
	return text;
}

/* The other side of a message: torch tells its rank in the process group, and shows the global one.
 */
static void put_peer(struct gt_buf *args, const struct gt_ev_comms *ev, struct gt_str collective)
{
	bool sends = gt_str_equal(collective, GT_STR("send"));

	if (!sends && !gt_str_equal(collective, GT_STR("recv")))
		return;
	if (ev->stride > 0 && ev->rank >= 0 && ev->rank < ev->size)
		gt_buf_printf(args, ",\"%s Rank\":%" PRId64, sends ? "Dst" : "Src",
			      ev->first + (int64_t)ev->rank * ev->stride);
}

size_t gt_comms_put_args(struct gt_buf *args, const struct gt_ev_comms *ev)
{
	const int64_t *in_splits = (const void *)ev->bytes;
	const int64_t *out_splits = in_splits + GT_MIN(ev->in_splits, GT_COMMS_LIST_MAX);
	const int64_t *ranks = out_splits + GT_MIN(ev->out_splits, GT_COMMS_LIST_MAX);
	const char *chars = (const char *)(ranks + GT_MIN(ev->ranks, GT_COMMS_LIST_MAX));
	struct gt_str collective = take(&chars, ev->collective_bytes);
	struct gt_str group = take(&chars, ev->group_bytes);
	struct gt_str description = take(&chars, ev->description_bytes);
	const char *type = type_name(ev->type);
	size_t before = args->len, common;

	put_text(args, "Collective name", collective);
	gt_buf_printf(args, ",\"In msg nelems\":%" PRId64 ",\"Out msg nelems\":%" PRId64,
		      ev->in_count, ev->out_count);
	gt_buf_printf(args, ",\"Group size\":%" PRId32, ev->size);
	if (type)
		gt_buf_printf(args, ",\"dtype\":\"%s\"", type);
	put_list(args, "In split size", in_splits, ev->in_splits);
	put_list(args, "Out split size", out_splits, ev->out_splits);
	if (group.len)
		put_text(args, "Process Group Name", group);
	if (description.len)
		put_text(args, "Process Group Description", description);
	if (ev->ranks)
		put_list(args, "Process Group Ranks", ranks, ev->ranks);
	put_peer(args, ev, collective);
	common = args->len - before;
	gt_buf_printf(args, ",\"Rank\":%" PRId32, ev->rank);
	if (ev->first >= 0)
		gt_buf_printf(args, ",\"Global rank start\":%" PRId32, ev->first);
	if (ev->stride > 0)
		gt_buf_printf(args, ",\"Global rank stride\":%" PRId32, ev->stride);
	return common;
}
