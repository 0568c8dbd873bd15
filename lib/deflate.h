/*
 * deflate.h - a deflate encoder (RFC 1951) for text whose author knows where it repeats itself.
 *
 * The trace writer makes its text from a few patterns; hints say from which position on how far
 * back the same pattern stood last. Looking there first finds what a search would not: traces
 * become smaller than zlib makes them, at three times its speed (man/gtrace-internals.7).
 */
#ifndef GT_DEFLATE_H
#define GT_DEFLATE_H

#include "base.h"
#include "buf.h"

#define GT_DEFLATE_WINDOW 32768 /* how far back a match may lie */

struct gt_deflate_hint {
	uint32_t at;   /* offset in the text */
	uint32_t dist; /* from there on look so many bytes back; 0: no idea */
};

struct gt_deflate;

int gt_deflate_new(struct gt_deflate **ret);
void gt_deflate_free(struct gt_deflate *deflate); /* NULL is fine */

/*
 * Compress text[from..to), which continues what came before: bytes in front of from must be those
 * given last, as many as there were since the last flush, at most GT_DEFLATE_WINDOW. hints are in
 * rising order of at; they may be wrong. Complete blocks go to out, whose failed flag is the only
 * error.
 */
void gt_deflate_text(struct gt_deflate *deflate, const char *text, size_t from, size_t to,
		     const struct gt_deflate_hint *hints, size_t hint_count, struct gt_buf *out);

/*
 * Write what is held back and come to a byte boundary that decoding can start from: nothing later
 * refers to anything before it. final: this ends the deflate stream.
 */
void gt_deflate_flush(struct gt_deflate *deflate, bool final, struct gt_buf *out);

#endif
