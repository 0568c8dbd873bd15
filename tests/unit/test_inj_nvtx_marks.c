/* Ranges and marks of NVTX that are steps, or that are captured. */
#include "nvtx_rig.h"

/* ---- steps ---- */

static void test_steps(void **state)
{
	nvtxRangeId_t id;

	(void)state;
	nvtx_wanted_marks = NVTX_STEP;
	standin.recording = false;
	nvtxMarkA("step"); /* each mark ends a step */
	assert_int_equal(standin.steps, 1);
	nvtxMarkA("no step");
	nvtxRangePushA("step 2");
	assert_int_equal(standin.steps, 1);
	nvtxRangePushA("step, a part of it");
	nvtxRangePop();
	assert_int_equal(standin.steps, 1);
	nvtxRangePop(); /* the end of a range ends a step */
	assert_int_equal(standin.steps, 2);
	id = nvtxRangeStartA("step");
	assert_int_equal(standin.steps, 2);
	nvtxRangeEnd(id);
	assert_int_equal(standin.steps, 3);
	assert_int_equal(standin.event_count, 0);

	standin.recording = true;
	id = nvtxRangeStartA("step");
	nvtxRangeEnd(id);
	assert_int_equal(standin.steps, 4);
	assert_event(0, GT_EV_RANGE_START, standin.events[1].range_id, "step");
	assert_event(1, GT_EV_RANGE_END, standin.events[0].range_id, NULL);

	nvtx_wanted_marks = 0;
	standin.regex_runs = 0;
	nvtxMarkA("step");
	assert_int_equal(standin.steps, 4);
	assert_int_equal(standin.regex_runs, 0);
}

static void test_step_cache(void **state)
{
	nvtxStringHandle_t string = nvtxDomainRegisterStringA(NULL, "step registered");
	nvtxEventAttributes_t a = attributes(NVTX_MESSAGE_TYPE_REGISTERED,
					     (nvtxMessageValue_t){ .registered = string });
	char name[16];

	(void)state;
	nvtx_wanted_marks = NVTX_STEP;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name),
			 i % 2 ? "other" : "step x"); /* one pointer, two texts */
		nvtxMarkA(name);
		nvtxMarkEx(&a);
	}
	assert_int_equal(standin.steps, 150);
	assert_int_equal(standin.regex_runs, 3);
}

/* ---- captured ranges ---- */

static void test_captures(void **state)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("of captures");
	nvtxEventAttributes_t a = attributes(NVTX_MESSAGE_TYPE_ASCII,
					     (nvtxMessageValue_t){ .ascii = "capture this" });
	nvtxRangeId_t id;

	(void)state;
	nvtx_wanted_marks = NVTX_CAPTURED;
	standin.recording = false;
	nvtxRangePushA("capture, in another domain");
	nvtxRangePop();
	nvtxDomainMarkEx(domain, &a); /* a mark is no range */
	assert_int_equal(standin.captures + (int)standin.event_count, 0);
	nvtxDomainRangePushEx(domain, &a);
	assert_int_equal(standin.captures, 1);
	assert_event(0, GT_EV_PUSH, 1, "capture this"); /* it is in the trace of itself */
	id = nvtxDomainRangeStartEx(domain, &a);
	assert_int_equal(standin.captures, 2);
	nvtxDomainRangePop(domain);
	assert_int_equal(standin.captures, 1);
	nvtxDomainRangeEnd(domain, id);
	assert_int_equal(standin.captures, 0);
	assert_int_equal(standin.event_count, 4);
	nvtxDomainRangePop(domain); /* of none */
	assert_int_equal(standin.captures, 0);
	assert_int_equal(standin.steps, 0);
}

static void test_captured_step(void **state)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("of captures");
	nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "step");
	nvtxEventAttributes_t step = attributes(NVTX_MESSAGE_TYPE_REGISTERED,
						(nvtxMessageValue_t){ .registered = string });
	nvtxEventAttributes_t a =
		attributes(NVTX_MESSAGE_TYPE_ASCII, (nvtxMessageValue_t){ .ascii = "capture" });

	(void)state;
	nvtx_wanted_marks = NVTX_STEP | NVTX_CAPTURED;
	nvtxDomainRangePushEx(domain, &step);
	nvtxDomainRangePushEx(domain, &a); /* within a step's range */
	assert_int_equal(standin.captures, 1);
	nvtxDomainRangePop(domain);
	nvtxDomainRangePop(domain);
	assert_int_equal(standin.captures, 0);
	assert_int_equal(standin.steps, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_steps),
		TEST(test_step_cache),
		TEST(test_captures),
		TEST(test_captured_step),
	};

	use_door();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
