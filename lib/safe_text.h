/*
 * safe_text.h - names from a file, on their way to a terminal or into JSON: no byte of them may
 * steer a terminal, and what is written is UTF-8.
 */
#ifndef GT_SAFE_TEXT_H
#define GT_SAFE_TEXT_H

#include "base.h"
#include "buf.h"
#include "str.h"

/*
 * Append text. Control characters (C0, DEL, C1) and those that reorder or hide text (bidirectional
 * controls, line and paragraph separators) are shown as \x1b, \u202e; bytes that are not UTF-8
 * become U+FFFD.
 */
void gt_safe_put(struct gt_buf *out, struct gt_str text);

/* The same as a quoted JSON string, which reads back as text (but for bytes that are not UTF-8). */
void gt_safe_put_json(struct gt_buf *out, struct gt_str text);

/* Columns that safe text takes on a terminal: one a character. */
size_t gt_safe_width(struct gt_str text);

/* Append safe text cut in its middle to at most width columns (at least 5). */
void gt_safe_put_cut(struct gt_buf *out, struct gt_str text, size_t width);

#endif
