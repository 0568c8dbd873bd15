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
	_Atomic uint32_t id;   /* GT_EV_STRING id, 0: not published yet */
	_Atomic uint8_t marks; /* as nvtx_text_marks() has it, and NVTX_ASKED; 0: not known */
	uint32_t len_bytes;
	char bytes[]; /* UTF-8, not terminated */
};

#define NVTX_ASKED    1
#define NVTX_STEP     2 /* it matches --step-range */
#define NVTX_CAPTURED 4 /* and so it does the name in --capture-range */

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

/* Which of the two above were given, so that nvtx_text_marks() is worth asking. */
extern uint8_t nvtx_wanted_marks;

/* Once, when the session has begun. */
void nvtx_names_init(void);

/* The one name of these bytes; NULL without memory. Lock-free. */
struct nvtx_name *nvtx_name_get(const char *bytes, size_t len_bytes);

/* Its GT_EV_STRING id; 0 when it could not be published (counted). */
uint32_t nvtx_name_id(struct nvtx_name *name);

/* Fill text; longer than GT_STRING_MAX is cut. No message is the empty text. */
void nvtx_text_load(struct nvtx_text *text, struct nvtx_message message);
void nvtx_text_release(struct nvtx_text *text);

/* NVTX_STEP and NVTX_CAPTURED. Regular expressions run once a text. */
uint8_t nvtx_text_marks(const struct nvtx_text *text);

#endif
