/*
 * field.h - fields of structures that others declare, by their offset in bytes, aligned or not.
 */
#ifndef INJ_FIELD_H
#define INJ_FIELD_H

#include "base.h"

static inline uint64_t field_u64(const void *object, size_t at)
{
	uint64_t value;

	memcpy(&value, (const char *)object + at, sizeof(value));
	return value;
}

static inline uint16_t field_u16(const void *object, size_t at)
{
	uint16_t value;

	memcpy(&value, (const char *)object + at, sizeof(value));
	return value;
}

static inline int field_int(const void *object, size_t at)
{
	int value;

	memcpy(&value, (const char *)object + at, sizeof(value));
	return value;
}

static inline const void *field_pointer(const void *object, size_t at)
{
	return (const void *)(uintptr_t)field_u64(object, at);
}

#endif
