/* Calls out of a library are redirected, however they were bound. */
#include "library.h"
#include "fake_c10.h"
#include "in_child.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define NEW "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"

static char folder[4096];

typedef void (*new_t)(void *reporter, void *address, size_t bytes);

static void *loaded;
static struct fake_c10 *fake;
static void (*call)(void *address, size_t bytes);
static new_t original;
static int hooked;

static void hook(void *reporter, void *address, size_t bytes)
{
	hooked++;
	original(reporter, address, bytes);
}

static void other_hook(void *reporter, void *address, size_t bytes)
{
	(void)reporter;
	(void)address;
	(void)bytes;
}

/* RTLD_LAZY: nothing is bound yet that need not be. */
static void load(const char *variant)
{
	char path[sizeof(folder) + 64];

	snprintf(path, sizeof(path), "%s/%s/libc10.so", folder, variant);
	loaded = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	check(loaded);
	fake = dlsym(loaded, "fake_c10");
	call = (typeof(call))dlsym(loaded, "fake_cpu_new");
	original = (new_t)dlsym(loaded, NEW);
	check(fake && call && original);
}

static int redirect(new_t to)
{
	struct inj_library library;

	check(inj_library_find(&library, "libc10.so") == 1);
	return inj_library_redirect(&library, NEW, (const void *)original, (const void *)to);
}

/* The protections of the library's memory, one line a piece. */
static void read_maps(char *ret, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[sizeof(folder) + 256];
	size_t len = 0;

	check(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/libc10.so"))
			len += (size_t)snprintf(ret + len, size - len, "%s", line);
		check(len < size);
	}
	fclose(maps);
	check(len);
}

static void every_way_to_bind(void **state)
{
	static const char *const variants[] = { "lazy", "now", "no-plt" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		in_child_until(_exit, {
			static char before[16384], after[16384];

			load(variants[i]);
			read_maps(before, sizeof(before));
			check(redirect(hook) == 1);
			read_maps(after, sizeof(after));
			check(!strcmp(before, after)); /* what was read-only is so again */
			call(fake, 12);
			check(hooked == 1 && fake->handed_out == 1);
			check(fake->address == fake && fake->bytes == 12);
			check(redirect(hook) == 1); /* once more: the same */
			call(fake, 13);
			check(hooked == 2 && fake->handed_out == 2);
		});
	}
}

static void after_it_was_called(void **state)
{
	(void)state;
	in_child_until(_exit, {
		load("lazy");
		call(fake, 1);
		check(!hooked && redirect(hook) == 1);
		call(fake, 2);
		check(hooked == 1 && fake->handed_out == 2);
	});
}

static void bound_within_the_library(void **state)
{
	(void)state;
	in_child_until(_exit, {
		load("bound");
		check(!redirect(hook));
		call(fake, 1);
		check(!hooked && fake->handed_out == 1);
	});
}

static void somebody_else_was_first(void **state)
{
	(void)state;
	in_child_until(_exit, {
		load("now");
		check(redirect(other_hook) == 1);
		check(redirect(hook) == -EBUSY);
		call(fake, 1);
		check(!hooked && !fake->handed_out);
	});
}

static void which_are_loaded(void **state)
{
	(void)state;
	in_child_until(_exit, {
		struct inj_library library;

		check(!inj_library_find(&library, "libc10.so"));
		load("lazy");
		check(inj_library_find(&library, "libc10.so") == 1);
		check(dlsym(library.handle, NEW) == (void *)original);
		check(inj_library_find(&library, "libc10") == 1); /* as with a version behind it */
		check(!inj_library_find(&library, "c10.so"));
		load("now");
		check(inj_library_find(&library, "libc10.so") == 2);
		check(dlsym(library.handle, NEW) != (void *)original); /* the first one */
	});
	in_child_until(_exit, { /* it stays */
				struct inj_library library;

				load("lazy");
				check(inj_library_find(&library, "libc10.so") == 1);
				check(!dlclose(loaded));
				call(fake, 1);
				check(fake->handed_out == 1);
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_to_bind),        cmocka_unit_test(after_it_was_called),
		cmocka_unit_test(bound_within_the_library), cmocka_unit_test(which_are_loaded),
		cmocka_unit_test(somebody_else_was_first),
	};

	(void)argc;
	snprintf(folder, sizeof(folder), "%.*s/fake-c10", (int)(strrchr(argv[0], '/') - argv[0]),
		 argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
