/*
 * nvtx_rig.h - a real client of the NVTX door: NVTX's own headers, as every program includes them.
 * The rest of the injection is a stand-in that keeps the events in memory.
 */
#ifndef NVTX_RIG_H
#define NVTX_RIG_H

#include <nvtx3/nvToolsExt.h>

#include "inj_standin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);
extern uint8_t nvtx_wanted_marks;

#define NVTX_STEP     2
#define NVTX_CAPTURED 4

static inline int reset(void **state)
{
	(void)state;
	standin_reset();
	nvtx_wanted_marks = 0;
	return 0;
}

static inline void assert_event(size_t at, enum gt_event_type type, uint64_t range_id,
				const char *text)
{
	assert_true(at < standin.event_count);
	assert_int_equal(standin.events[at].type, type);
	assert_int_equal(standin.events[at].range_id, range_id);
	if (text)
		assert_string_equal(standin.events[at].name_id
					    ? standin_name(standin.events[at].name_id)
					    : standin.events[at].text,
				    text);
}

static inline nvtxEventAttributes_t attributes(int type, nvtxMessageValue_t message)
{
	return (nvtxEventAttributes_t){ .version = NVTX_VERSION,
					.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
					.messageType = type,
					.message = message };
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

/* NVTX's headers look here when no NVTX_INJECTION64_PATH names a library. */
static inline void use_door(void)
{
	unsetenv("NVTX_INJECTION64_PATH");
	InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;
}

#endif
