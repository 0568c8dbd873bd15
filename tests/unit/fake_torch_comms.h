/*
 * fake_torch_comms.h - what the fake libtorch_cpu.so tells of collectives.
 */
#ifndef FAKE_TORCH_COMMS_H
#define FAKE_TORCH_COMMS_H

#include <stddef.h>
#include <stdint.h>

struct fake_string { /* std::string */
	const char *bytes;
	size_t len;
	char local[16];
};

struct fake_numbers { /* std::vector<int64_t> */
	int64_t *begin, *end, *limit;
};

struct fake_comms { /* torch::ParamCommsDebugInfo */
	const void *table;
	struct fake_string description, group;
	int32_t rank, size;
	struct fake_string collective;
	int64_t in_count, out_count;
	int8_t type;
	struct fake_numbers in_splits, out_splits;
	int32_t first, stride;
	struct fake_numbers ranks;
};

struct fake_comms_state {
	size_t shift;               /* of all fields: another version */
	struct fake_comms *current; /* of the thread */
	const void *table;          /* of those that were made */
	int made;
	int destroyed;
};

/* In the library; found by dlsym(). */
extern struct fake_comms_state fake_comms;

#endif
