/* given_env.h - an environment that a test gives, in place of getenv()'s. */
#ifndef GIVEN_ENV_H
#define GIVEN_ENV_H

#include "base.h"

static const char *given_variables[64]; /* name, value, name, value, …, NULL */

#define GIVEN(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* GIVE_ENV(NULL): an empty one */
#define GIVE_ENV(...) memcpy(given_variables, GIVEN(__VA_ARGS__), sizeof(GIVEN(__VA_ARGS__)))

static char *given_env(const char *name)
{
	const char **pair;

	for (pair = given_variables; *pair; pair += 2)
		if (!strcmp(pair[0], name))
			return (char *)(uintptr_t)pair[1];
	return NULL;
}

#endif
