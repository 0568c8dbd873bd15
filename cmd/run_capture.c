/* run_capture.c - --capture-range and --capture-end: a range of the program or of time. */
#include "base.h"
#include "clock.h"
#include "die.h"
#include "run_options.h"

#include <stdlib.h>

static const char nvtx[] = "nvtx:";

static enum run_capture parse_range(const char *text)
{
	if (!strcmp(text, "steps"))
		return RUN_CAPTURE_STEPS;
	if (!strcmp(text, "cuda-profiler"))
		return RUN_CAPTURE_PROFILER;
	if (!strcmp(text, "time"))
		return RUN_CAPTURE_TIME;
	if (!strncmp(text, nvtx, strlen(nvtx)) && text[strlen(nvtx)])
		return RUN_CAPTURE_NVTX;
	die(STATUS_OWN_FAILURE,
	    "run: --capture-range takes none, steps, cuda-profiler, nvtx:REGEX or time, not '%s'",
	    text);
}

/* How often a range is captured; 0: without end. */
static uint64_t parse_end(const char *text)
{
	static const char repeat[] = "repeat";
	char *end = NULL;
	uint64_t count;

	if (!text || !strcmp(text, "stop"))
		return 1;
	if (!strcmp(text, repeat))
		return 0;
	if (!strncmp(text, "repeat:", strlen("repeat:")) && gt_is_digit(text[strlen("repeat:")])) {
		count = strtoull(text + strlen("repeat:"), &end, 10);
		if (!*end && count && count <= GT_SCHEDULE_MAX)
			return count;
	}
	die(STATUS_OWN_FAILURE, "run: --capture-end takes stop, repeat or repeat:N, not '%s'",
	    text);
}

static void exclude(const struct run_options *run, bool given, const char *option)
{
	char capture[RUN_CAPTURE_OPTION_MAX];

	if (!given)
		return;
	run_capture_option(run, capture, sizeof(capture));
	die(STATUS_OWN_FAILURE, "run: --%s and --%s exclude each other", option, capture);
}

/* Of steps, where others than steps are captured. */
static void exclude_schedule(const struct run_options *run)
{
	const char *option = run_schedule_option(&run->schedule);

	exclude(run, option, option);
}

/* As with --step-source none. */
static void capture_all(struct run_options *run)
{
	exclude(run,
		run->step_source != RUN_STEP_NOT_GIVEN && run->step_source != RUN_STEP_AUTO &&
			run->step_source != RUN_STEP_NONE,
		"step-source");
	exclude(run, run->step_range, "step-range");
	run->step_source = RUN_STEP_NONE;
	run->capture = RUN_CAPTURE_STEPS;
}

static void check_time(const struct run_options *run, uint64_t repeat)
{
	if (run->capture != RUN_CAPTURE_TIME) {
		exclude(run, run->delay_ms != RUN_NOT_GIVEN, "delay");
		exclude(run, run->duration_ms, "duration");
	} else if (run->delay_ms == RUN_NOT_GIVEN && !run->duration_ms) {
		die(STATUS_OWN_FAILURE, "run: --capture-range time needs --delay or --duration");
	} else if (repeat != 1 && !run->duration_ms) {
		die(STATUS_OWN_FAILURE, "run: --capture-end repeat needs --duration");
	}
}

static void check_nvtx(const struct run_options *run)
{
	const char *text = run->capture_range + strlen(nvtx), *at = strrchr(text, '@');
	char name[RUN_CAPTURE_TEXT_MAX];

	if (strlen(text) > 1000)
		die(STATUS_OWN_FAILURE, "run: --capture-range is too long");
	snprintf(name, sizeof(name), "%.*s", at ? (int)(at - text) : (int)strlen(text), text);
	run_check_regex("capture-range", name);
}

void run_capture_check(struct run_options *run)
{
	struct gt_schedule capture = GT_SCHEDULE_CAPTURE;

	run->capture_implied = !run->capture_range &&
			       (run->delay_ms != RUN_NOT_GIVEN || run->duration_ms);
	if (run->capture_implied)
		run->capture_range = "time";
	if (!run->capture_range && run->capture_end)
		die(STATUS_OWN_FAILURE, "run: --capture-end needs --capture-range");
	if (!run->capture_range)
		return;
	if (!strcmp(run->capture_range, "none"))
		capture_all(run);
	else
		run->capture = parse_range(run->capture_range);
	capture.repeat = parse_end(run->capture_end);
	check_time(run, capture.repeat);
	if (run->capture == RUN_CAPTURE_STEPS) {
		exclude(run, run->capture_end, "capture-end");
		return;
	}
	if (run->capture == RUN_CAPTURE_NVTX)
		check_nvtx(run);
	exclude(run, run->capture == RUN_CAPTURE_PROFILER && run->no_gpu, "activities cpu");
	exclude_schedule(run);
	run->schedule = capture;
}

void run_capture_option(const struct run_options *run, char *buf, size_t len)
{
	if (run->capture_implied)
		snprintf(buf, len, run->duration_ms ? "duration" : "delay");
	else
		snprintf(buf, len, "capture-range %s", run->capture_range);
}

void run_capture_format(const struct run_options *run, char *buf, size_t len)
{
	if (run->capture == RUN_CAPTURE_AUTO)
		*buf = '\0';
	else if (run->capture == RUN_CAPTURE_STEPS)
		snprintf(buf, len, "steps");
	else if (run->capture != RUN_CAPTURE_TIME)
		snprintf(buf, len, "%s", run->capture_range);
	else
		snprintf(buf, len, "time:%llu,%llu,%llu",
			 (unsigned long long)(gt_clock_ms(CLOCK_MONOTONIC) + run->delay_ms),
			 (unsigned long long)run->duration_ms, (unsigned long long)run->delay_ms);
}

void run_capture_describe(const struct run_options *run, char *buf, size_t len)
{
	switch (run->capture) {
	case RUN_CAPTURE_NVTX:
		snprintf(buf, len, "the NVTX range '%s'", run->capture_range + strlen(nvtx));
		break;
	case RUN_CAPTURE_TIME:
		snprintf(buf, len, "%.10g s after the start", (double)run->delay_ms / 1000);
		break;
	default:
		snprintf(buf, len, "cudaProfilerStart()");
	}
}
