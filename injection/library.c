/*
 * library.c - see library.h.
 */
#include "library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- which are loaded ---- */

struct search {
	const char *name;
	uint32_t count;
	const char *path; /* of the first */
	struct inj_library *found;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	struct search *search = ctx;

	(void)size;
	if (strncmp(slash ? slash + 1 : info->dlpi_name, search->name, strlen(search->name)))
		return 0;
	if (search->count++)
		return 0;
	search->path = info->dlpi_name;
	search->found->base = info->dlpi_addr;
	search->found->headers = info->dlpi_phdr;
	search->found->header_count = info->dlpi_phnum;
	return 0;
}

uint32_t inj_library_find(struct inj_library *ret, const char *name)
{
	struct search search = { .name = name, .found = ret };

	dl_iterate_phdr(look_at, &search);
	/* Python loads them for itself alone, so their symbols are not everybody's. */
	ret->handle = search.count ? dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	return ret->handle ? search.count : 0;
}

/* ---- its calls ---- */

#ifdef __x86_64__
#define CALL_SLOT R_X86_64_JUMP_SLOT /* of a call through the procedure linkage table */
#define DATA_SLOT R_X86_64_GLOB_DAT  /* of one without (-fno-plt), or of the address */
#else
#define CALL_SLOT R_AARCH64_JUMP_SLOT
#define DATA_SLOT R_AARCH64_GLOB_DAT
#endif

struct entries {
	const ElfW(Rela) * first;
	size_t count;
};

struct dynamic {
	const ElfW(Sym) * symbols;
	const char *names;
	struct entries calls;
	struct entries data; /* without those that have no symbol, which come first */
};

/* The dynamic linker of glibc has made an address of what is an offset in the file. */
static const void *address_of(const struct inj_library *library, ElfW(Addr) value)
{
	return (const void *)(value < library->base ? value + library->base : value);
}

static const ElfW(Phdr) * header_of(const struct inj_library *library, uint32_t type)
{
	for (size_t i = 0; i < library->header_count; i++) {
		if (library->headers[i].p_type == type)
			return &library->headers[i];
	}
	return NULL;
}

static bool read_dynamic(const struct inj_library *library, struct dynamic *ret)
{
	const ElfW(Phdr) *header = header_of(library, PT_DYNAMIC);
	const ElfW(Dyn) *entry = header ? (const void *)(library->base + header->p_vaddr) : NULL;
	size_t call_bytes = 0, data_bytes = 0, relative = 0;

	*ret = (struct dynamic){ 0 };
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_SYMTAB:
			ret->symbols = address_of(library, entry->d_un.d_ptr);
			break;
		case DT_STRTAB:
			ret->names = address_of(library, entry->d_un.d_ptr);
			break;
		case DT_JMPREL:
			ret->calls.first = address_of(library, entry->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			call_bytes = entry->d_un.d_val;
			break;
		case DT_RELA:
			ret->data.first = address_of(library, entry->d_un.d_ptr);
			break;
		case DT_RELASZ:
			data_bytes = entry->d_un.d_val;
			break;
		case DT_RELACOUNT:
			relative = entry->d_un.d_val;
			break;
		}
	}
	if (ret->calls.first)
		ret->calls.count = call_bytes / sizeof(*ret->calls.first);
	if (ret->data.first) {
		ret->data.count = data_bytes / sizeof(*ret->data.first);
		relative = GT_MIN(relative, ret->data.count);
		ret->data.first += relative;
		ret->data.count -= relative;
	}
	return ret->symbols && ret->names;
}

/* Is it in the library's code or data? */
static bool contains(const struct inj_library *library, const void *address)
{
	for (size_t i = 0; i < library->header_count; i++) {
		const ElfW(Phdr) *header = &library->headers[i];

		if (header->p_type == PT_LOAD &&
		    (uintptr_t)address - library->base - header->p_vaddr < header->p_memsz)
			return true;
	}
	return false;
}

/* Has the dynamic linker made this read-only when it was done? It does so with whole pages. */
static bool is_protected(const struct inj_library *library, uintptr_t address, uintptr_t page)
{
	const ElfW(Phdr) *header = header_of(library, PT_GNU_RELRO);
	uintptr_t start = header ? library->base + header->p_vaddr : 0;
	uintptr_t end = header ? start + header->p_memsz : 0;

	return address >= (start & -page) && address < (end & -page);
}

static int set_entry(const struct inj_library *library, const void *_Atomic *entry,
		     const void *original, const void *hook)
{
	const void *now = atomic_load_explicit(entry, memory_order_relaxed);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	bool is_read_only = is_protected(library, (uintptr_t)entry, page);
	void *start = (void *)((uintptr_t)entry & -page);

	/* Within the library itself: not bound so far, or to a function of its own. */
	if (now != original && now != hook && !contains(library, now))
		return -EBUSY;
	if (is_read_only && mprotect(start, page, PROT_READ | PROT_WRITE))
		return -errno;
	atomic_store_explicit(entry, hook, memory_order_release);
	if (is_read_only)
		mprotect(start, page, PROT_READ);
	return 1;
}

static int redirect(const struct inj_library *library, const struct dynamic *dynamic,
		    const struct entries *entries, const char *symbol, const void *original,
		    const void *hook)
{
	int count = 0, rc;

	for (size_t i = 0; i < entries->count; i++) {
		const ElfW(Rela) *entry = &entries->first[i];
		const ElfW(Sym) *named = &dynamic->symbols[ELF64_R_SYM(entry->r_info)];
		uint32_t type = ELF64_R_TYPE(entry->r_info);

		if ((type != CALL_SLOT && type != DATA_SLOT) ||
		    strcmp(dynamic->names + named->st_name, symbol) != 0)
			continue;
		rc = set_entry(library, (void *)(library->base + entry->r_offset), original, hook);
		if (rc < 0)
			return rc;
		count++;
	}
	return count;
}

int inj_library_redirect(const struct inj_library *library, const char *symbol,
			 const void *original, const void *hook)
{
	struct dynamic dynamic;
	int calls, data;

	if (!read_dynamic(library, &dynamic))
		return 0;
	calls = redirect(library, &dynamic, &dynamic.calls, symbol, original, hook);
	if (calls < 0)
		return calls;
	data = redirect(library, &dynamic, &dynamic.data, symbol, original, hook);
	return data < 0 ? data : calls + data;
}
