/*
 * fake_torch.h - what a test tells the fake libtorch_cpu.so to be and to do. It has the functions
 * of torch that the injection uses, under their C++ names and with the types of a real one.
 */
#ifndef FAKE_TORCH_H
#define FAKE_TORCH_H

#include <stdbool.h>
#include <stdint.h>

struct fake_torch {
	/* its RecordFunction: where sequence_nr_ and fwd_thread_id_ are, and how long it is */
	uint16_t sequence_at;
	uint16_t fwd_thread_at;
	uint16_t bytes;
	bool deaf; /* the observer is registered, but never called */
	int registered;
	bool needs_inputs; /* the observer does */
	bool enabled;
	int switched; /* calls that enable or disable */
};

/* An operator in progress. */
struct fake_op {
	_Alignas(16) char function[512];
	const char *name;
	void *context;
};

/* In the library; found by dlsym(). */
extern struct fake_torch fake_torch;
void fake_op_begin(struct fake_op *op, uint8_t scope, const char *name, int64_t sequence,
		   uint64_t fwd_thread);
void fake_op_end(struct fake_op *op);

#endif
