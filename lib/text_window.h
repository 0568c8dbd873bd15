/*
 * text_window.h - the part of a stream of JSON text that is in memory: it moves on, and grows for
 * what has to lie in one piece.
 */
#ifndef GT_TEXT_WINDOW_H
#define GT_TEXT_WINDOW_H

#include "base.h"
#include "err.h"
#include "gz_reader.h"
#include "json_reader.h"

struct gt_text_window {
	struct gt_gz_reader *gz;
	struct gt_err *err;
	const char *at;           /* the reader's place; what is before it is forgotten */
	struct gt_json_text text; /* up to its end, with the padding behind it */
	bool ended;               /* the stream has no more */
	uint64_t bytes;           /* read so far */
	char *buf;
	size_t cap; /* without the padding */
};

/* Empty, of cap bytes at first. gz and err are borrowed. 0 or -ENOMEM. */
int gt_text_window_init(struct gt_text_window *window, struct gt_gz_reader *gz, size_t cap,
			struct gt_err *err);
void gt_text_window_release(struct gt_text_window *window);

/* Bytes of text from the reader's place on. */
static inline size_t gt_text_window_left(const struct gt_text_window *window)
{
	return (size_t)(window->text.end - window->at);
}

/*
 * Read on behind the text, into twice the space when it takes all. The text moves: only
 * window->at follows it, all other pointers into it are void. 0, -ENOMEM or as gt_gz_read().
 */
int gt_text_window_fill(struct gt_text_window *window);

/* Have at least want bytes from the reader's place on, fewer only at the end of the stream. */
int gt_text_window_need(struct gt_text_window *window, size_t want);

/*
 * Move to the next byte that is not white space. *ret is '\0' at the end of the stream, and where
 * there is one.
 */
int gt_text_window_peek(struct gt_text_window *window, char *ret);

#endif
