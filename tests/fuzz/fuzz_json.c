/*
 * fuzz_json.c - the scans of json_reader.h agree with each other, and repairs are JSON.
 */
#include "base.h"
#include "buf.h"
#include "json_reader.h"
#include "json_repair.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void values(struct gt_str raw)
{
	char *out = malloc(raw.len + 1);
	int64_t value;

	check(out != NULL);
	gt_json_kind(raw);
	gt_json_int(raw, &value);
	gt_json_scaled(raw, 3, &value);
	check(gt_json_unescape(gt_json_unquote(raw), out) <= raw.len);
	free(out);
}

static void walk(const char *start, const char *end)
{
	struct gt_json_text text = { .end = end };
	const char *at = start + 1;
	struct gt_str key;

	if (*start == '{') {
		while (at && gt_json_member(&text, &at, &key) > 0) {
			const char *value = at;

			values(key);
			at = gt_json_value_end(&text, at);
			if (at && at <= end)
				values((struct gt_str){ value, (size_t)(at - value) });
		}
	} else {
		while (at && gt_json_element(&text, &at) > 0)
			at = gt_json_value_end(&text, at);
	}
}

/* The same end with every kind of vector code, and in pieces. */
static const char *container_end(const char *start, const char *end)
{
	static const enum gt_json_simd kinds[] = { GT_JSON_PORTABLE, GT_JSON_SSE2, GT_JSON_AVX2 };
	struct gt_json_skip skip = { 0 };
	const char *found = NULL, *at = start;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct gt_json_text text = { .end = end };
		const char *after;

		gt_json_use(kinds[i]);
		after = gt_json_container_end(&text, start);
		check(i == 0 || after == found);
		check(after ? after <= end : text.stop <= end);
		found = after;
	}
	do {
		at = gt_json_skip_piece(&skip, at, GT_MIN(at + 7, end));
	} while (skip.depth && at < end);
	check(!found || at == found);
	return found;
}

static void repair(const char *start, const char *end)
{
	struct gt_json_text text = { .end = end };
	struct gt_json_text repaired;
	struct gt_buf out = { 0 };
	const char *after = gt_json_repair(&text, start, &out);

	if (after) {
		check(after <= end);
		gt_buf_fill(&out, '"', GT_JSON_PAD);
		repaired.end = out.data + out.len - GT_JSON_PAD;
		check(gt_json_container_end(&repaired, out.data) == repaired.end);
		walk(out.data, repaired.end);
	}
	gt_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + GT_JSON_PAD);
	const char *start, *end = copy + size;

	check(copy != NULL);
	memcpy(copy, data, size);
	memset(copy + size, '"', GT_JSON_PAD);
	start = gt_json_skip_space(copy);
	if (start < end && (*start == '{' || *start == '[')) {
		if (container_end(start, end))
			walk(start, end);
		repair(start, end);
	}
	values((struct gt_str){ copy, size });
	free(copy);
	return 0;
}
