#include "demangle.h"

#include <stdlib.h>
#include <libiberty/demangle.h>

#define MANGLED_MAX ((size_t)64 << 10)

char *gt_demangle(const char *name, size_t len, size_t *ret_len)
{
	char *mangled, *plain;

	if (len < 3 || len > MANGLED_MAX || memcmp(name, "_Z", 2) != 0 || memchr(name, 0, len))
		return NULL;
	mangled = strndup(name, len);
	if (!mangled)
		return NULL;
	plain = cplus_demangle_v3(mangled, DMGL_PARAMS | DMGL_ANSI);
	free(mangled);
	if (plain)
		*ret_len = strlen(plain);
	return plain;
}
