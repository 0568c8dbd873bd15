/*
 * capture.h - captured ranges (--capture-range): what is traced begins and ends by calls of
 * cudaProfilerStart() and cudaProfilerStop(), by an NVTX range, or by the clock.
 */
#ifndef INJ_CAPTURE_H
#define INJ_CAPTURE_H

#include "session.h"

/* Read GT_ENV_CAPTURE, of which NULL is the default. false: it is malformed. */
bool inj_capture_init(const char *text);

/* What a CUDA call of this name, without its version, does to a range. */
enum inj_capture_call { INJ_CALL_NO_MARK, INJ_CALL_BEGINS, INJ_CALL_ENDS };
enum inj_capture_call inj_capture_call_of(const char *name);

/* Are such calls obeyed at this moment? */
bool inj_capture_hears(void);

/*
 * Such a call was made: on its thread, where the beginning of a range waits, as a step does, until
 * all is on. So do these two, for the NVTX ranges that are captured.
 */
void inj_capture_call(enum inj_capture_call call);
void inj_capture_range_begins(void);
void inj_capture_range_ends(void);

/* Is this NVTX range captured, if it is of the domain below? Only where ranges are. */
bool inj_capture_is_name(const char *bytes, size_t len);

/* The domain of captured NVTX ranges; NULL: any. */
const char *inj_capture_domain(void);

/*
 * Ranges of time: mark what is due, one mark at a time. From the control thread, and before there
 * is one. Returns after how many ms it is to be called again.
 */
uint32_t inj_capture_follow(void);

/* Is one of these so near that CUPTI is to be called, if it never was? From the control thread. */
bool inj_capture_near(void);

#endif
