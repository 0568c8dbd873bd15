/*
 * remove_tree.h - the end of a test's directory.
 */
#ifndef TEST_REMOVE_TREE_H
#define TEST_REMOVE_TREE_H

#include <ftw.h>
#include <stdio.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* With all that is in it; links are not followed. 0, or -1 and errno. */
static int remove_tree(const char *dir)
{
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
