/*
 * sockdir.h - the collector's socket in a private directory: only this user reaches it.
 */
#ifndef GT_SOCKDIR_H
#define GT_SOCKDIR_H

#include "base.h"
#include "err.h"

#include <sys/un.h>

#define GT_SOCKDIR_FILE "/socket"

struct gt_sockdir {
	int listen_fd; /* SOCK_SEQPACKET, listening, non-blocking, close-on-exec */
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path) - (sizeof(GT_SOCKDIR_FILE) - 1)];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* of the socket */
};

/*
 * The directories to try, in this order: those of XDG_RUNTIME_DIR and TMPDIR, /tmp, and /dev/shm,
 * which can be written also where the root file system cannot. lookup is getenv() or a stand-in.
 */
#define GT_SOCKDIR_BASES 4
void gt_sockdir_bases(char *(*lookup)(const char *name), const char *ret[GT_SOCKDIR_BASES]);

/*
 * Make a directory of mode 0700 in the first of bases (count of them, NULL and relative ones are
 * passed over) that takes one and whose path is short enough, and listen on a socket in it.
 * 0 or -errno; the message names the last base tried.
 */
int gt_sockdir_open(struct gt_sockdir *ret, const char *const *bases, size_t count,
		    struct gt_err *err);

/* Close the socket and remove it with its directory. */
void gt_sockdir_close(struct gt_sockdir *sockdir);

/* The same in another process, which has not the socket. */
void gt_sockdir_remove(const struct gt_sockdir *sockdir);

#endif
