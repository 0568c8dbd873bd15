/*
 * safe_text.c - see safe_text.h.
 */
#include "base.h"
#include "safe_text.h"
#include "utf8.h"

#define ELLIPSIS GT_STR("...")

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static bool is_hidden(uint32_t code)
{
	return code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x2069) ||
	       code == 0xfeff;
}

static bool is_plain(char byte)
{
	return byte >= 0x20 && byte < 0x7f;
}

static void put_code(struct gt_buf *out, uint32_t code)
{
	char bytes[4];

	gt_buf_append(out, bytes, gt_utf8_encode(code, bytes));
}

static uint32_t next_code(struct gt_str *text)
{
	size_t len;
	uint32_t code = gt_utf8_decode(text->ptr, text->len, &len);

	text->ptr += len;
	text->len -= len;
	return code;
}

void gt_safe_put(struct gt_buf *out, struct gt_str text)
{
	while (text.len) {
		size_t plain = 0;
		uint32_t code;

		while (plain < text.len && is_plain(text.ptr[plain]))
			plain++;
		gt_buf_append(out, text.ptr, plain);
		text.ptr += plain;
		text.len -= plain;
		if (!text.len)
			break;
		code = next_code(&text);
		if (is_control(code))
			gt_buf_printf(out, "\\x%02x", code);
		else if (is_hidden(code))
			gt_buf_printf(out, "\\u%04x", code);
		else
			put_code(out, code);
	}
}

void gt_safe_put_json(struct gt_buf *out, struct gt_str text)
{
	gt_buf_byte(out, '"');
	while (text.len) {
		uint32_t code = next_code(&text);

		if (code == '"' || code == '\\')
			gt_buf_byte(out, '\\');
		if (is_control(code) || is_hidden(code))
			gt_buf_printf(out, "\\u%04x", code);
		else
			put_code(out, code);
	}
	gt_buf_byte(out, '"');
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t gt_safe_width(struct gt_str text)
{
	size_t width = 0;

	for (size_t i = 0; i < text.len; i++)
		width += !is_continuation(text.ptr[i]);
	return width;
}

/* The byte behind the first count characters. */
static size_t byte_of(struct gt_str text, size_t count)
{
	size_t at = 0;

	for (; at < text.len; at++) {
		if (!is_continuation(text.ptr[at]) && !count--)
			break;
	}
	return at;
}

void gt_safe_put_cut(struct gt_buf *out, struct gt_str text, size_t width)
{
	size_t total = gt_safe_width(text);
	size_t kept = width - ELLIPSIS.len;
	size_t tail;

	if (total <= width) {
		gt_buf_append(out, text.ptr, text.len);
		return;
	}
	tail = byte_of(text, total - kept / 2);
	gt_buf_append(out, text.ptr, byte_of(text, kept - kept / 2));
	gt_buf_append(out, ELLIPSIS.ptr, ELLIPSIS.len);
	gt_buf_append(out, text.ptr + tail, text.len - tail);
}
