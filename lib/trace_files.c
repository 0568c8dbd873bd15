/*
 * trace_files.c - see trace_files.h.
 */
#include "base.h"
#include "str.h"
#include "trace_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool is_json(const char *name)
{
	return name[0] != '.' && (gt_text_ends(name, ".json") || gt_text_ends(name, ".json.gz"));
}

static bool is_trace(const char *name)
{
	return name[0] != '.' &&
	       (gt_text_ends(name, "trace.json") || gt_text_ends(name, "trace.json.gz"));
}

static bool is_regular(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int gt_trace_files_add_path(struct gt_trace_files *files, const char *path)
{
	if (files->count == files->cap) {
		size_t cap = files->cap ? files->cap * 2 : 64;
		char **paths = realloc(files->paths, cap * sizeof(*paths));

		if (!paths)
			return -ENOMEM;
		files->paths = paths;
		files->cap = cap;
	}
	files->paths[files->count] = strdup(path);
	if (!files->paths[files->count])
		return -ENOMEM;
	files->count++;
	return 0;
}

static int add_entry(struct gt_trace_files *files, const char *directory, const char *name)
{
	bool is_here = !strcmp(directory, ".");
	char *path;
	int rc;

	if (asprintf(&path, "%s%s%s", is_here ? "" : directory,
		     is_here || gt_text_ends(directory, "/") ? "" : "/", name) < 0)
		return -ENOMEM;
	rc = is_regular(path) ? gt_trace_files_add_path(files, path) : 0;
	free(path);
	return rc;
}

static int add_matches(struct gt_trace_files *files, const char *directory, struct dirent **entries,
		       int count, bool (*matches)(const char *name))
{
	int rc = 0;

	for (int i = 0; !rc && i < count; i++) {
		if (matches(entries[i]->d_name))
			rc = add_entry(files, directory, entries[i]->d_name);
	}
	return rc;
}

int gt_trace_files_add(struct gt_trace_files *files, const char *directory, struct gt_err *err)
{
	struct dirent **entries;
	size_t before = files->count;
	int count = scandir(directory, &entries, NULL, versionsort);
	int rc;

	if (count < 0)
		return gt_err_sys(err, -errno, "%s: cannot read", directory);
	rc = add_matches(files, directory, entries, count, is_trace);
	if (!rc && files->count == before)
		rc = add_matches(files, directory, entries, count, is_json);
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	if (rc)
		return gt_err_set(err, rc, "out of memory");
	if (files->count == before)
		return gt_err_set(err, -ENODATA, "%s: there is no trace in this directory",
				  directory);
	return 0;
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
						      : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

const char *gt_trace_files_newest(const struct gt_trace_files *files)
{
	const char *newest = NULL;
	struct stat best, st;

	for (size_t i = 0; i < files->count; i++) {
		if (stat(files->paths[i], &st) < 0 || (newest && !is_newer(&st, &best)))
			continue;
		newest = files->paths[i];
		best = st;
	}
	return newest;
}

void gt_trace_files_release(struct gt_trace_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
	memset(files, 0, sizeof(*files));
}
