/*
 * shell_words.h - command lines as text: from words, and into words.
 */
#ifndef GT_SHELL_WORDS_H
#define GT_SHELL_WORDS_H

#include "base.h"
#include "buf.h"

/* Append one word as a POSIX shell reads it back, in quotes only where it needs them. */
void gt_shell_put(struct gt_buf *out, const char *word);

/*
 * The words of text, in place: blanks part them; '...' and "..." hold them together and a backslash
 * takes the next byte as it is. Nothing is expanded. Returns their number, -EINVAL when a quote is
 * not closed, -E2BIG when there are more than max.
 */
int gt_shell_split(char *text, char **words, size_t max);

#endif
