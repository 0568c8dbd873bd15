#include "base.h"
#include "cgroup.h"

#include <stdlib.h>

#define PATH_LEN 4096
/* Version 1 says "no limit" by a number near this one. */
#define NO_LIMIT (UINT64_MAX / 4)

struct group { /* names in the hierarchy of version 2, or of memory in version 1 */
	const char *mount;
	const char *limit;
	const char *usage;
	const char *cached; /* in memory.stat: of files, and given back when memory is short */
	char path[PATH_LEN];
};

static FILE *open_file(const char *root, const struct group *group, const char *file)
{
	char path[2 * PATH_LEN];

	if (snprintf(path, sizeof(path), "%s%s%s/%s", root, group->mount, group->path, file) >=
	    (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* The number in a file of a group; UINT64_MAX: "max", or no such file. */
static uint64_t read_bytes(const char *root, const struct group *group, const char *file)
{
	FILE *stream = open_file(root, group, file);
	unsigned long long value = 0;
	char line[64], *end = line;

	if (!stream)
		return UINT64_MAX;
	if (fgets(line, sizeof(line), stream))
		value = strtoull(line, &end, 10);
	fclose(stream);
	return end == line ? UINT64_MAX : value;
}

static uint64_t read_cached(const char *root, const struct group *group)
{
	FILE *stream = open_file(root, group, "memory.stat");
	size_t len = strlen(group->cached);
	uint64_t bytes = 0;
	char line[256];

	while (stream && fgets(line, sizeof(line), stream))
		if (!strncmp(line, group->cached, len) && line[len] == ' ')
			bytes = strtoull(line + len, NULL, 10);
	if (stream)
		fclose(stream);
	return bytes;
}

/* Which group this process is in: a line "0::/a/b", or "4:memory:/a/b". */
static bool find_group(const char *root, struct group *ret)
{
	char path[PATH_LEN], line[PATH_LEN], *name;
	bool found = false;
	FILE *stream;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	stream = fopen(path, "re");
	while (stream && fgets(line, sizeof(line), stream)) {
		line[strcspn(line, "\n")] = '\0';
		name = strchr(line, ':');
		if (!name)
			continue;
		if (!strncmp(name, ":memory:/", 9)) {
			*ret = (struct group){ .mount = "/sys/fs/cgroup/memory",
					       .limit = "memory.limit_in_bytes",
					       .usage = "memory.usage_in_bytes",
					       .cached = "total_inactive_file" };
			name += 8;
		} else if (!strncmp(name, "::/", 3) && !found) {
			*ret = (struct group){ .mount = "/sys/fs/cgroup",
					       .limit = "memory.max",
					       .usage = "memory.current",
					       .cached = "inactive_file" };
			name += 2;
		} else {
			continue;
		}
		snprintf(ret->path, sizeof(ret->path), "%s", name);
		found = true;
	}
	if (stream)
		fclose(stream);
	return found;
}

uint64_t gt_cgroup_memory(const char *root, uint64_t *ret_limit)
{
	uint64_t left = UINT64_MAX, limit, used, own;
	struct group group;
	char *slash;

	*ret_limit = UINT64_MAX;
	if (!find_group(root, &group))
		return UINT64_MAX;
	/* Up to the topmost one, which in a container is its own. */
	for (;;) {
		limit = read_bytes(root, &group, group.limit);
		used = read_bytes(root, &group, group.usage);
		if (limit < NO_LIMIT && used != UINT64_MAX) {
			used -= GT_MIN(read_cached(root, &group), used);
			own = gt_sub(limit, used);
			*ret_limit = own < left ? limit : *ret_limit;
			left = GT_MIN(own, left);
		}
		slash = strrchr(group.path, '/');
		if (!slash)
			return left;
		*slash = '\0';
	}
}
