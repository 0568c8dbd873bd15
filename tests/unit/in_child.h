/*
 * in_child.h - cases that run in a process of their own, since what they need can happen once in a
 * process only. There cmocka's asserts are of no use: check() ends the process with the line.
 */
#ifndef IN_CHILD_H
#define IN_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

/* leave: exit or _exit, with which the process ends. */
#define in_child_until(leave, ...)                                             \
	do {                                                                   \
		pid_t child_ = fork();                                         \
		int status_ = 0;                                               \
		if (!child_) {                                                 \
			__VA_ARGS__;                                           \
			leave(0);                                              \
		}                                                              \
		assert_int_equal(waitpid(child_, &status_, 0), child_);        \
		if (status_)                                                   \
			fail_msg("line ~%d of the case failed", status_ >> 8); \
	} while (0)

#define check(cond)                                \
	do {                                       \
		if (!(cond))                       \
			_exit(__LINE__ % 255 + 1); \
	} while (0)

#endif
