/*
 * sessions.h - the sessions of gtrace run that this user has on this machine.
 */
#ifndef CMD_SESSIONS_H
#define CMD_SESSIONS_H

#include "base.h"
#include "control_socket.h"

#define SESSIONS_MAX 256

struct session_found {
	char path[GT_CONTROL_PATH_MAX]; /* of its socket */
	bool mute;                      /* it does not answer */
	struct gt_fields status;
};

struct sessions {
	struct session_found *list; /* by pid of their gtrace */
	size_t count;
};

/* Of its gtrace. */
uint64_t session_pid(const struct session_found *session);

/* Ask all of them. What dead ones left behind is removed. Ends the program without memory. */
void sessions_find(struct sessions *ret);
void sessions_free(struct sessions *sessions);

/*
 * The one that is meant: by its name, the pid of its gtrace, or that of one of its processes; NULL
 * means the only one. Ends the program when there is none, or more than one; command is for that.
 */
const struct session_found *sessions_choose(const struct sessions *sessions, const char *command,
					    const char *wanted);

#endif
