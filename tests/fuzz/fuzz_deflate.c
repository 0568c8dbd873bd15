/*
 * fuzz_deflate.c - any text in any pieces with any hints inflates to itself.
 */
#include "base.h"
#include "deflate.h"
#include "must.h"

#include <stdlib.h>

#include <zlib.h>

#define TEXT_MAX ((size_t)1 << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gt_buf *packed, const struct gt_buf *text)
{
	char *got = malloc(text->len + 1);
	z_stream z = { 0 };

	must(got && inflateInit2(&z, -15) == Z_OK);
	z.next_in = (Bytef *)packed->data;
	z.avail_in = (uInt)packed->len;
	z.next_out = (Bytef *)got;
	z.avail_out = (uInt)text->len + 1;
	must(inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_in && z.total_out == text->len);
	must(!text->len || !memcmp(got, text->data, text->len));
	inflateEnd(&z);
	free(got);
}

/*
 * The input is a list of commands: a byte; below 0x40 so many literal bytes follow, below 0x80 a
 * piece from before is repeated, below 0xc0 a hint, else a call of the encoder, with a flush or
 * not.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gt_deflate_hint hints[1024];
	struct gt_buf text = { 0 }, out = { 0 };
	struct gt_deflate *deflate;
	size_t from = 0, hint_count = 0, len, back, i;

	must(!gt_deflate_new(&deflate));
	while (size && text.len < TEXT_MAX) {
		uint8_t command = *data++;

		size--;
		if (command < 0x40) {
			len = GT_MIN((size_t)command, size);
			gt_buf_append(&text, data, len);
			data += len;
			size -= len;
		} else if (size >= 2 && command < 0xc0) {
			back = (size_t)data[0] << 7 | data[1];
			data += 2;
			size -= 2;
			if (command >= 0x80 && hint_count < ARRAY_SIZE(hints))
				hints[hint_count++] = (struct gt_deflate_hint){ (uint32_t)text.len,
										(uint32_t)back };
			for (i = 0; command < 0x80 && back && back <= text.len && i < 64u * command;
			     i++)
				gt_buf_byte(&text, text.data[text.len - back]);
		} else if (command >= 0xc0) {
			gt_deflate_text(deflate, text.data, from, text.len, hints, hint_count,
					&out);
			from = text.len;
			hint_count = 0;
			if (command & 1)
				gt_deflate_flush(deflate, false, &out);
		}
	}
	gt_deflate_text(deflate, text.data, from, text.len, hints, hint_count, &out);
	gt_deflate_flush(deflate, true, &out);
	must(!out.failed && !text.failed);
	check(&out, &text);
	gt_deflate_free(deflate);
	gt_buf_release(&out);
	gt_buf_release(&text);
	return 0;
}
