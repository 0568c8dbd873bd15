/*
 * fake_torch_comms.c - the part of a fake libtorch_cpu.so that tells of collectives: the object in
 * question, laid out as PyTorch 2.5 to 2.15 do, and how it is made and found.
 */
#include "fake_torch_comms.h"

#include <string.h>

#define NAMED(symbol) __asm__(symbol) __attribute__((visibility("default")))
#define EXPORTED      __attribute__((visibility("default")))

EXPORTED struct fake_comms_state fake_comms;

struct fake_names {
	struct fake_string description;
	struct fake_string group;
};

void make_comms(struct fake_comms *ret, struct fake_names *names, int rank,
		struct fake_string *collective, int64_t in_count, int64_t out_count, int8_t type,
		void *in_splits, void *out_splits, int first, int stride, int size)
	NAMED("_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_"
	      "traitsIcESaIcEEES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iii");
void *get_debug_info(uint8_t kind) NAMED("_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE");

/* Short ones only: they are in the object itself. */
static void move_string(struct fake_string *to, struct fake_string *from)
{
	*to = *from;
	to->bytes = to->local;
	from->len = 0;
}

static void destroy_comms(struct fake_comms *comms)
{
	(void)comms;
	fake_comms.destroyed++;
}

static void (*const table[])(struct fake_comms *) = { destroy_comms };

void make_comms(struct fake_comms *ret, struct fake_names *names, int rank,
		struct fake_string *collective, int64_t in_count, int64_t out_count, int8_t type,
		void *in_splits, void *out_splits, int first, int stride, int size)
{
	struct fake_comms *comms = (void *)((char *)ret + fake_comms.shift);
	static int64_t ranks[8];

	fake_comms.made++;
	memset(comms, 0, sizeof(*comms));
	fake_comms.table = table;
	memcpy(ret, &fake_comms.table, sizeof(fake_comms.table));
	move_string(&comms->description, &names->description);
	move_string(&comms->group, &names->group);
	move_string(&comms->collective, collective);
	comms->rank = rank;
	comms->size = size;
	comms->in_count = in_count;
	comms->out_count = out_count;
	comms->type = type;
	memcpy(&comms->in_splits, in_splits, sizeof(comms->in_splits));
	memcpy(&comms->out_splits, out_splits, sizeof(comms->out_splits));
	comms->first = first;
	comms->stride = stride;
	comms->ranks.begin = ranks;
	comms->ranks.end = ranks + size;
	for (int i = 0; i < size; i++)
		ranks[i] = first + (int64_t)i * stride;
}

void *get_debug_info(uint8_t kind)
{
	return kind == 4 ? fake_comms.current : NULL;
}
