#include "base.h"
#include "sockdir.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void gt_sockdir_bases(char *(*lookup)(const char *name), const char *ret[GT_SOCKDIR_BASES])
{
	ret[0] = lookup("XDG_RUNTIME_DIR");
	ret[1] = lookup("TMPDIR");
	ret[2] = "/tmp";
	ret[3] = "/dev/shm";
}

static int listen_at(const char *path, struct gt_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, saved;

	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return gt_err_sys(err, -errno, "cannot make a Unix socket");
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, SOMAXCONN) < 0) {
		saved = errno;
		close(fd);
		return gt_err_sys(err, -saved, "cannot listen on '%s'", path);
	}
	return fd;
}

static int open_in(struct gt_sockdir *ret, const char *base, struct gt_err *err)
{
	struct gt_sockdir dir = { .listen_fd = -1 };
	int len = snprintf(dir.dir, sizeof(dir.dir), "%s/gtrace-XXXXXX", base);

	if (len < 0 || (size_t)len >= sizeof(dir.dir))
		return gt_err_set(err, -ENAMETOOLONG, "'%s' is too long for a Unix socket", base);
	if (!mkdtemp(dir.dir))
		return gt_err_set(err, -errno,
				  "cannot make a directory in '%s': %s; set TMPDIR to one where it "
				  "can be made",
				  base, strerror(errno));
	snprintf(dir.path, sizeof(dir.path), "%s" GT_SOCKDIR_FILE, dir.dir);
	dir.listen_fd = listen_at(dir.path, err);
	if (dir.listen_fd < 0) {
		rmdir(dir.dir);
		return dir.listen_fd;
	}
	*ret = dir;
	return 0;
}

int gt_sockdir_open(struct gt_sockdir *ret, const char *const *bases, size_t count,
		    struct gt_err *err)
{
	size_t i;
	int rc = gt_err_set(err, -ENOENT, "no directory to put a socket in");

	for (i = 0; i < count; i++) {
		if (!bases[i] || bases[i][0] != '/')
			continue;
		rc = open_in(ret, bases[i], err);
		if (!rc)
			return 0;
	}
	return rc;
}

void gt_sockdir_remove(const struct gt_sockdir *sockdir)
{
	unlink(sockdir->path);
	rmdir(sockdir->dir);
}

void gt_sockdir_close(struct gt_sockdir *sockdir)
{
	close(sockdir->listen_fd);
	gt_sockdir_remove(sockdir);
}
