/*
 * nvtx_names.h - the names NVTX clients give: registered strings, domains, and the text of one
 * event in whichever of NVTX's encodings it came.
 */
#ifndef INJ_NVTX_NAMES_H
#define INJ_NVTX_NAMES_H

#include "inject.h"

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

/*
 * A registered string or a domain, found by its text: the same text is the same handle, in every
 * DSO. Never freed, because a client may use its handle until the process ends.
 */
struct nvtx_name {
	struct nvtx_name *next; /* in its bucket; immutable once published */
	uint64_t hash;
	_Atomic uint32_t id;     /* GT_EV_STRING id, 0: not published yet */
	_Atomic uint8_t is_step; /* enum nvtx_is_step */
	uint32_t len_bytes;
	char bytes[]; /* UTF-8, not terminated */
};

enum nvtx_is_step { NVTX_STEP_UNKNOWN = 0, NVTX_STEP_NO = 1, NVTX_STEP_YES = 2 };

/* What one call gave for a name: a type of enum nvtxMessageType_t and its value. */
struct nvtx_message {
	int32_t type;
	nvtxMessageValue_t value;
};

/* Its bytes, borrowed from the client, the registry or the conversion buffer. */
struct nvtx_text {
	struct nvtx_name *name; /* a registered string, else NULL */
	const char *bytes;
	size_t len_bytes;
	char *allocated; /* what nvtx_text_release() frees */
	char utf8[GT_INLINE_MAX];
};

/* A --step-range was given, so that nvtx_text_is_step() is worth asking. */
extern bool nvtx_has_step_range;

/* Read --step-range's variable once, at entry. */
void nvtx_names_init(void);

/* The one name of these bytes; NULL without memory. Lock-free. */
struct nvtx_name *nvtx_name_get(const char *bytes, size_t len_bytes);

/* Its GT_EV_STRING id; 0 when it could not be published (counted). */
uint32_t nvtx_name_id(struct nvtx_name *name);

/* Fill text; longer than GT_STRING_MAX is cut. No message is the empty text. */
void nvtx_text_load(struct nvtx_text *text, struct nvtx_message message);
void nvtx_text_release(struct nvtx_text *text);

/* Does it match --step-range? Regular expressions run once a text. */
bool nvtx_text_is_step(const struct nvtx_text *text);

#endif
