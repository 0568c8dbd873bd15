/*
 * die.h - lines for the user, on stderr, each in one write. Bytes that would steer a terminal are
 * replaced: names of programs, of files and of peers go in as they are.
 */
#ifndef CMD_DIE_H
#define CMD_DIE_H

#include "base.h"
#include "str.h"

/* From now on the lines below begin with this, since other gtraces share stderr. */
void speak_as_rank(uint32_t rank);

/* "gtrace: …" */
void say(const char *fmt, ...) GT_PRINTF(1, 2);

/* "gtrace: warning: …" */
void warn(const char *fmt, ...) GT_PRINTF(1, 2);

/* "gtrace: …", and the end of the program. */
void die(int status, const char *fmt, ...) GT_PRINTF(2, 3) __attribute__((noreturn));

/* Lines that are ready to print and safe for a terminal. */
void say_text(const char *text, size_t len);

/*
 * A line (of plain ASCII) that the next one, or one of the functions above, takes the place of.
 * Only on a terminal, and only while this process is in its foreground.
 */
void say_progress(const char *fmt, ...) GT_PRINTF(1, 2);
void end_progress(void);

/* Does stdout take colours? */
bool stdout_has_colours(void);

/* Write to stdout; check_stdout() says when it fails. */
void put_stdout(struct gt_str text);

/* Flush stdout: when that fails (full disk, closed pipe), 0 becomes status 1 and a line. */
int check_stdout(int status);

#endif
