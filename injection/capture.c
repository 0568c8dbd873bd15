/*
 * capture.c - captured ranges (--capture-range): what begins and ends them. Each is a mark of
 * GT_STEP_CAPTURE, so that all else is as with steps.
 */
#include "capture.h"
#include "events.h"

#include <regex.h>
#include <stdlib.h>

/* How long a range of the program waits for what is to be switched on. */
#define ARM_WAIT_MS 200
/* And how long before its beginning that is done for a range of time. */
#define WARM_UP_MS 100
/* And before that CUPTI is called for the first time. */
#define LEAD_MS 1000
/* How often is looked whether it has been done by then. */
#define RETRY_MS 10

/* ---- by calls and ranges of the program ---- */

static _Atomic uint32_t wanted; /* ranges of it that are open; one is captured from the first on */
static _Atomic uint32_t begun;  /* as has been marked */

static bool is_armed(void)
{
	return atomic_load_explicit(&inj_live.armed, memory_order_acquire);
}

/* The range begins when all is on: what other threads do meanwhile is before it. */
static void mark(bool begins)
{
	if (begins) {
		inj_step(GT_STEP_CAPTURE, 0);
		if (!is_armed())
			inj_control_wait(inj_control_post(), ARM_WAIT_MS);
	}
	inj_step(GT_STEP_CAPTURE, 0);
}

/* Several threads may come here at once: who sees a difference marks it. */
static void follow_wanted(void)
{
	uint32_t is, is_wanted;

	for (;;) {
		is = atomic_load(&begun);
		is_wanted = atomic_load(&wanted) > 0;
		if (is == is_wanted)
			return;
		if (atomic_compare_exchange_strong(&begun, &is, is_wanted))
			mark(is_wanted);
	}
}

/* Obeyed without having been asked for: only by a program of which no step was seen so far. */
bool inj_capture_hears(void)
{
	if (inj_config.capture == INJ_CAPTURE_PROFILER)
		return true;
	return inj_config.capture == INJ_CAPTURE_AUTO &&
	       (atomic_load_explicit(&inj_arena->mode, memory_order_relaxed) == GT_MODE_KEEP ||
		atomic_load_explicit(&inj_arena->step_source, memory_order_relaxed) ==
			GT_STEP_CAPTURE);
}

enum inj_capture_call inj_capture_call_of(const char *name)
{
	if (!strcmp(name, "cudaProfilerStart") || !strcmp(name, "cuProfilerStart"))
		return INJ_CALL_BEGINS;
	if (!strcmp(name, "cudaProfilerStop") || !strcmp(name, "cuProfilerStop"))
		return INJ_CALL_ENDS;
	return INJ_CALL_NO_MARK;
}

void inj_capture_call(enum inj_capture_call call)
{
	if (!inj_capture_hears())
		return;
	/* They do not nest: CUDA ignores a second Start and a second Stop. */
	atomic_store(&wanted, call == INJ_CALL_BEGINS);
	follow_wanted();
}

void inj_capture_range_begins(void)
{
	atomic_fetch_add(&wanted, 1);
	follow_wanted();
}

void inj_capture_range_ends(void)
{
	uint32_t count = atomic_load(&wanted);

	do {
		if (!count)
			return;
	} while (!atomic_compare_exchange_weak(&wanted, &count, count - 1));
	follow_wanted();
}

/* ---- by time ---- */

enum time_mark {
	MARK_WARM_UP, /* what the range needs is to be switched on */
	MARK_BEGIN,
	MARK_END
};

static struct {
	uint64_t begin_ms;  /* of the next or current range, by inj_now_ms() */
	uint64_t length_ms; /* 0: to the end */
	uint64_t pause_ms;
	uint64_t due_ms; /* the next mark */
	enum time_mark next;
} timed;

/* "BEGIN,LENGTH,PAUSE" */
static bool parse_time(const char *text)
{
	uint64_t *const fields[] = { &timed.begin_ms, &timed.length_ms, &timed.pause_ms };
	char *end;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		*fields[i] = strtoull(text, &end, 10);
		if (end == text || *end != (i + 1 < ARRAY_SIZE(fields) ? ',' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

static uint64_t warm_up_ms(void)
{
	return gt_sub(timed.begin_ms, WARM_UP_MS);
}

/*
 * A process that comes late has the single range from its own beginning on, whole; of those that
 * repeat, what is left of the next one.
 */
static void skip_past(uint64_t now_ms)
{
	if (inj_config.schedule.repeat == 1) {
		if (timed.length_ms && timed.begin_ms + timed.length_ms <= now_ms)
			inj_log(GT_LOG_WARN, "the time from --delay on, for --duration, was over "
					     "before this process could be traced: its range "
					     "begins only now");
		timed.begin_ms = GT_MAX(timed.begin_ms, now_ms);
	} else {
		while (timed.length_ms && timed.begin_ms + timed.length_ms <= now_ms)
			timed.begin_ms += timed.length_ms + timed.pause_ms;
	}
	timed.due_ms = warm_up_ms();
}

/* From when on CUPTI may be called for the first time, for the next mark. */
static uint64_t lead_begin_ms(void)
{
	return gt_sub(timed.due_ms, LEAD_MS);
}

bool inj_capture_near(void)
{
	return timed.due_ms && timed.due_ms != UINT64_MAX && inj_now_ms() >= lead_begin_ms();
}

uint32_t inj_capture_follow(void)
{
	uint64_t now_ms, next_ms, end_ms;

	if (inj_config.capture != INJ_CAPTURE_TIME)
		return UINT32_MAX;
	now_ms = inj_now_ms();
	if (!timed.due_ms)
		skip_past(now_ms);
	if (now_ms < timed.due_ms) {
		next_ms = now_ms < lead_begin_ms() ? lead_begin_ms() : timed.due_ms;
		return (uint32_t)GT_MIN(next_ms - now_ms, UINT32_MAX);
	}
	/* It is not waited for: while the program's own profiler runs, it is not on. */
	if (timed.next == MARK_BEGIN && !is_armed())
		return RETRY_MS;
	inj_step(GT_STEP_CAPTURE, 0);
	switch (timed.next) {
	case MARK_WARM_UP:
		timed.due_ms = timed.begin_ms;
		timed.next = MARK_BEGIN;
		break;
	case MARK_BEGIN:
		end_ms = timed.begin_ms + timed.length_ms;
		timed.due_ms = end_ms > now_ms ? end_ms : now_ms + timed.length_ms;
		if (!timed.length_ms)
			timed.due_ms = UINT64_MAX;
		timed.next = MARK_END;
		break;
	case MARK_END:
		timed.begin_ms = timed.due_ms + timed.pause_ms;
		timed.due_ms = warm_up_ms();
		timed.next = MARK_WARM_UP;
	}
	return 0;
}

/* ---- which ---- */

static regex_t regex;
static const char *domain; /* NULL: any */

bool inj_capture_is_name(const char *bytes, size_t len)
{
	regmatch_t range = { .rm_so = 0, .rm_eo = (regoff_t)len };

	return !regexec(&regex, bytes, 1, &range, REG_STARTEND);
}

const char *inj_capture_domain(void)
{
	return domain;
}

/* "REGEX" or "REGEX@DOMAIN" */
static bool parse_range(const char *text)
{
	static char copy[sizeof(inj_config.step_range)];
	char *at;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return false;
	at = strrchr(copy, '@');
	if (at) {
		*at = '\0';
		domain = strcmp(at + 1, "*") ? at + 1 : NULL;
	}
	return !regcomp(&regex, copy, REG_EXTENDED | REG_NOSUB);
}

bool inj_capture_init(const char *text)
{
	if (!text || !*text) {
		inj_config.capture = INJ_CAPTURE_AUTO;
	} else if (!strcmp(text, "steps")) {
		inj_config.capture = INJ_CAPTURE_NONE;
	} else if (!strcmp(text, "cuda-profiler")) {
		inj_config.capture = INJ_CAPTURE_PROFILER;
	} else if (!strncmp(text, "nvtx:", strlen("nvtx:"))) {
		inj_config.capture = INJ_CAPTURE_NVTX;
		return parse_range(text + strlen("nvtx:"));
	} else if (!strncmp(text, "time:", strlen("time:"))) {
		inj_config.capture = INJ_CAPTURE_TIME;
		return parse_time(text + strlen("time:"));
	} else {
		return false;
	}
	return true;
}
