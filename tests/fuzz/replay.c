/*
 * replay.c - runs one fuzz target over files and directories of files: the regression test of its
 * corpus, with any compiler and sanitizer.
 */
#include "base.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	struct stat st;
	FILE *file = fopen(path, "rb");
	uint8_t *data;

	if (!file || fstat(fileno(file), &st) < 0) {
		perror(path);
		return 1;
	}
	/* Of the file's exact size, so that a sanitizer sees a read beyond it. */
	data = malloc(st.st_size ? st.st_size : 1);
	if (!data || fread(data, 1, st.st_size, file) != (size_t)st.st_size) {
		perror(path);
		return 1;
	}
	fclose(file);
	printf("%s\n", path); /* the last one printed is the one that crashed */
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, st.st_size);
	free(data);
	return 0;
}

static int replay(const char *path)
{
	char name[4096];
	struct dirent *entry;
	DIR *dir = opendir(path);
	int failed = 0;

	if (!dir)
		return replay_file(path);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		failed |= replay_file(name);
	}
	closedir(dir);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	return failed;
}
