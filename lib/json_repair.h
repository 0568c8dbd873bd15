/*
 * json_repair.h - makes JSON of what profilers wrote in its place: strings with unescaped quotes
 * and control characters, members that lost the quote before their key.
 */
#ifndef GT_JSON_REPAIR_H
#define GT_JSON_REPAIR_H

#include "base.h"
#include "buf.h"
#include "json_reader.h"

/*
 * Append a repaired copy of the value at 'at', which stands on '{' or '[', to out. Returns the
 * byte behind it in the original; NULL when it makes no sense, with the place in text->stop, which
 * is text->end when more text might help. A NUL never makes sense: it stands for lost data.
 */
const char *gt_json_repair(struct gt_json_text *text, const char *at, struct gt_buf *out);

#endif
