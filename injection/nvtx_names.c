/*
 * nvtx_names.c - the registry of names, conversion to UTF-8, and what they mark.
 */
#include "nvtx_names.h"
#include "capture.h"
#include "utf8.h"

#include <stdlib.h>

#define BUCKETS 1024 /* a power of two */

static struct nvtx_name *_Atomic buckets[BUCKETS];

/*
 * What texts seen lately mark: the hash without its lowest bits, which hold the answer. A word is
 * read and written whole, so threads need no lock; 0 is empty.
 */
static _Atomic uint64_t marks_cache[256];
#define MARKS_BITS (NVTX_ASKED | NVTX_STEP | NVTX_CAPTURED)

uint8_t nvtx_wanted_marks;

void nvtx_names_init(void)
{
	if (*inj_config.step_range)
		nvtx_wanted_marks |= NVTX_STEP;
	if (inj_config.capture == INJ_CAPTURE_NVTX)
		nvtx_wanted_marks |= NVTX_CAPTURED;
}

static uint64_t hash_bytes(const char *bytes, size_t len_bytes)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a's offset and prime */

	for (size_t i = 0; i < len_bytes; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
	return hash ^ (hash >> 32);
}

static struct nvtx_name *find(struct nvtx_name *from, const struct nvtx_name *end, uint64_t hash,
			      const char *bytes, size_t len_bytes)
{
	for (; from != end; from = from->next) {
		if (from->hash == hash && from->len_bytes == len_bytes &&
		    !memcmp(from->bytes, bytes, len_bytes))
			return from;
	}
	return NULL;
}

struct nvtx_name *nvtx_name_get(const char *bytes, size_t len_bytes)
{
	uint64_t hash = hash_bytes(bytes, len_bytes);
	struct nvtx_name *_Atomic *bucket = &buckets[hash % BUCKETS];
	struct nvtx_name *head = atomic_load_explicit(bucket, memory_order_acquire);
	struct nvtx_name *seen = find(head, NULL, hash, bytes, len_bytes);
	struct nvtx_name *name;
	int saved_errno = errno;

	if (seen)
		return seen;
	name = calloc(1, sizeof(*name) + len_bytes);
	errno = saved_errno;
	if (!name)
		return NULL;
	name->hash = hash;
	name->len_bytes = (uint32_t)len_bytes;
	memcpy(name->bytes, bytes, len_bytes);
	name->next = head;
	while (!atomic_compare_exchange_weak_explicit(bucket, &head, name, memory_order_acq_rel,
						      memory_order_acquire)) {
		seen = find(head, name->next, hash, bytes, len_bytes);
		if (seen) {
			free(name);
			return seen;
		}
		name->next = head;
	}
	return name;
}

uint32_t nvtx_name_id(struct nvtx_name *name)
{
	uint32_t id = atomic_load_explicit(&name->id, memory_order_acquire);

	if (GT_UNLIKELY(!id)) {
		id = inj_intern(name->bytes, name->len_bytes);
		/* Who sees it relies on the collector having the name. */
		atomic_store_explicit(&name->id, id, memory_order_release);
	}
	return id;
}

static void load_wide(struct nvtx_text *text, const wchar_t *message)
{
	const wchar_t *end = message;
	size_t len = 0;
	char *to = text->utf8, code[4];
	int saved_errno = errno;

	for (; *end && len <= GT_STRING_MAX - 4; end++)
		len += gt_utf8_encode(gt_utf8_scalar((uint32_t)*end), code);
	if (len > sizeof(text->utf8)) {
		to = text->allocated = malloc(len);
		errno = saved_errno;
		if (!to)
			return;
	}
	text->bytes = to;
	text->len_bytes = len;
	for (; message != end; message++)
		to += gt_utf8_encode(gt_utf8_scalar((uint32_t)*message), to);
}

void nvtx_text_load(struct nvtx_text *text, struct nvtx_message message)
{
	text->name = NULL;
	text->bytes = "";
	text->len_bytes = 0;
	text->allocated = NULL;
	if (!message.value.ascii)
		return;
	switch (message.type) {
	case NVTX_MESSAGE_TYPE_ASCII:
		text->bytes = message.value.ascii;
		text->len_bytes = strnlen(text->bytes, GT_STRING_MAX);
		break;
	case NVTX_MESSAGE_TYPE_UNICODE:
		load_wide(text, message.value.unicode);
		break;
	case NVTX_MESSAGE_TYPE_REGISTERED:
		text->name = (struct nvtx_name *)message.value.registered;
		text->bytes = text->name->bytes;
		text->len_bytes = text->name->len_bytes;
		break;
	default:
		break;
	}
}

void nvtx_text_release(struct nvtx_text *text)
{
	free(text->allocated);
}

static uint8_t ask(const char *bytes, size_t len_bytes)
{
	uint8_t marks = NVTX_ASKED;

	if (nvtx_wanted_marks & NVTX_STEP && inj_is_step_name(bytes, len_bytes))
		marks |= NVTX_STEP;
	if (nvtx_wanted_marks & NVTX_CAPTURED && inj_capture_is_name(bytes, len_bytes))
		marks |= NVTX_CAPTURED;
	return marks;
}

static uint8_t cached_marks(const char *bytes, size_t len_bytes)
{
	uint64_t hash = hash_bytes(bytes, len_bytes) | MARKS_BITS;
	_Atomic uint64_t *slot = &marks_cache[(hash >> 8) % ARRAY_SIZE(marks_cache)];
	uint64_t seen = atomic_load_explicit(slot, memory_order_relaxed);

	if ((seen | MARKS_BITS) != hash) {
		seen = (hash & ~(uint64_t)MARKS_BITS) | ask(bytes, len_bytes);
		atomic_store_explicit(slot, seen, memory_order_relaxed);
	}
	return (uint8_t)seen;
}

uint8_t nvtx_text_marks(const struct nvtx_text *text)
{
	struct nvtx_name *name = text->name;
	uint8_t known;

	if (!name)
		return cached_marks(text->bytes, text->len_bytes) & nvtx_wanted_marks;
	known = atomic_load_explicit(&name->marks, memory_order_relaxed);
	if (!known) {
		known = ask(name->bytes, name->len_bytes);
		atomic_store_explicit(&name->marks, known, memory_order_relaxed);
	}
	return known & nvtx_wanted_marks;
}
