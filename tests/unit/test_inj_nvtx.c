/* The NVTX door: ranges, marks, names and clients. */
#include "nvtx_rig.h"

#include <pthread.h>

static void *run_in_thread(void *(*body)(void *), void *arg)
{
	pthread_t thread;
	void *ret;

	assert_int_equal(pthread_create(&thread, NULL, body, arg), 0);
	assert_int_equal(pthread_join(thread, &ret), 0);
	return ret;
}

/* ---- ranges and marks ---- */

static void test_push_pop(void **state)
{
	(void)state;
	assert_int_equal(nvtxRangePushA("outer"), 0);
	assert_int_equal(nvtxRangePushW(L"inner"), 1);
	nvtxMarkA("here");
	assert_int_equal(nvtxRangePop(), 1);
	assert_int_equal(nvtxRangePop(), 0);
	assert_int_equal(nvtxRangePop(), -1);
	assert_int_equal(standin.event_count, 5);
	assert_event(0, GT_EV_PUSH, 1, "outer");
	assert_event(1, GT_EV_PUSH, 2, "inner");
	assert_event(2, GT_EV_MARK, 0, "here");
	assert_event(3, GT_EV_POP, 2, NULL);
	assert_event(4, GT_EV_POP, 1, NULL);
	assert_int_equal(standin.events[0].domain_id, 0);
	assert_int_equal(standin.starts, 1);
}

static void test_recording_changes(void **state)
{
	(void)state;
	standin.recording = false;
	assert_int_equal(nvtxRangePushA("before"), 0);
	nvtxMarkA("before");
	standin.recording = true;
	assert_int_equal(nvtxRangePushA("kept"), 1);
	standin.recording = false;
	assert_int_equal(nvtxRangePushA("between"), 2);
	standin.recording = true;
	assert_int_equal(nvtxRangePop(), 2);
	standin.recording = false;
	assert_int_equal(nvtxRangePop(), 1); /* its PUSH is recorded, so this is */
	standin.recording = true;
	assert_int_equal(nvtxRangePop(), 0); /* its PUSH is not */
	assert_int_equal(standin.event_count, 2);
	assert_event(0, GT_EV_PUSH, 2, "kept");
	assert_event(1, GT_EV_POP, 2, NULL);
}

/* Those that are not NVTX's nest with those that are. */
static void test_ranges_of_others(void **state)
{
	(void)state;
	gtrace_inject_push("ours");
	assert_int_equal(nvtxRangePushA("NVTX's"), 1);
	assert_int_equal(nvtxRangePop(), 1);
	gtrace_inject_pop();
	gtrace_inject_pop(); /* nothing is open */
	assert_int_equal(standin.event_count, 4);
	assert_event(0, GT_EV_PUSH, 1, "ours");
	assert_event(1, GT_EV_PUSH, 2, "NVTX's");
	assert_event(2, GT_EV_POP, 2, NULL);
	assert_event(3, GT_EV_POP, 1, NULL);
}

/* Whatever is pushed, popped, recorded and lost: what arrives pairs by thread, domain and depth. */
static void test_pairs_always(void **state)
{
	nvtxDomainHandle_t domains[2] = { NULL, nvtxDomainCreateA("pairs") };
	uint64_t open[2][64], deepest = 0;
	size_t depth[2] = { 0, 0 }, model[2] = { 0, 0 };
	unsigned int random = 12345;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		int d = rand_r(&random) % 2;

		atomic_store(&standin.recording, rand_r(&random) % 4 > 0);
		if (rand_r(&random) % 2 && model[d] < 60) {
			nvtxEventAttributes_t a = attributes(NVTX_MESSAGE_TYPE_ASCII,
							     (nvtxMessageValue_t){ .ascii = "x" });

			standin.arena_full = rand_r(&random) % 8 == 0;
			assert_int_equal(nvtxDomainRangePushEx(domains[d], &a), model[d]++);
			standin.arena_full = false;
		} else if (model[d]) {
			assert_int_equal(nvtxDomainRangePop(domains[d]), --model[d]);
		} else {
			assert_int_equal(nvtxDomainRangePop(domains[d]), -1);
		}
	}
	for (size_t i = 0; i < standin.event_count; i++) {
		int d = standin.events[i].domain_id != 0;

		if (standin.events[i].type == GT_EV_PUSH) {
			open[d][depth[d]++] = standin.events[i].range_id;
			deepest = GT_MAX(deepest, standin.events[i].range_id);
		} else {
			assert_true(depth[d] > 0);
			assert_int_equal(open[d][--depth[d]], standin.events[i].range_id);
		}
	}
	assert_true(standin.event_count > 1000 && deepest > 5);
	for (int d = 0; d < 2; d++) {
		while (nvtxDomainRangePop(domains[d]) >= 0)
			;
	}
}

/* What is too deep to be recorded is counted as lost. */
static void test_deep(void **state)
{
	(void)state;
	for (int i = 0; i < 600; i++)
		assert_int_equal(nvtxRangePushA("deep"), i);
	for (int i = 599; i >= 0; i--)
		assert_int_equal(nvtxRangePop(), i);
	assert_int_equal(standin.event_count, 2 * 512);
	assert_event(511, GT_EV_PUSH, 512, "deep");
	assert_event(512, GT_EV_POP, 512, NULL);
	assert_int_equal(standin.drops, 600 - 512);
}

static void test_lost_push(void **state)
{
	(void)state;
	standin.arena_full = true;
	assert_int_equal(nvtxRangePushA("lost"), 0);
	standin.arena_full = false;
	assert_int_equal(nvtxRangePop(), 0);
	assert_int_equal(standin.event_count, 0);
}

static void *end_range(void *id)
{
	nvtxRangeEnd(*(nvtxRangeId_t *)id);
	return NULL;
}

static void test_start_end(void **state)
{
	nvtxRangeId_t first = nvtxRangeStartA("first"), second = nvtxRangeStartW(L"second"), off;

	(void)state;
	assert_true(first && second && first != second);
	run_in_thread(end_range, &first);
	standin.recording = false;
	off = nvtxRangeStartA("off");
	assert_true(off && off != first && off != second);
	nvtxRangeEnd(second);
	standin.recording = true;
	nvtxRangeEnd(off);
	nvtxRangeEnd(0);
	assert_int_equal(standin.event_count, 4);
	assert_event(0, GT_EV_RANGE_START, standin.events[2].range_id, "first");
	assert_event(1, GT_EV_RANGE_START, standin.events[3].range_id, "second");
	assert_int_equal(standin.events[2].type, GT_EV_RANGE_END);
	assert_int_equal(standin.events[3].type, GT_EV_RANGE_END);
	assert_int_not_equal(standin.events[0].range_id, standin.events[1].range_id);
}

/* ---- names ---- */

static void test_attributes(void **state)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateW(L"app");
	nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
	nvtxEventAttributes_t a =
		attributes(NVTX_MESSAGE_TYPE_ASCII, (nvtxMessageValue_t){ .ascii = "ascii" });

	(void)state;
	nvtxMarkEx(&a);
	a = attributes(NVTX_MESSAGE_TYPE_UNICODE, (nvtxMessageValue_t){ .unicode = L"wide" });
	nvtxDomainMarkEx(domain, &a);
	a = attributes(NVTX_MESSAGE_TYPE_REGISTERED, (nvtxMessageValue_t){ .registered = string });
	nvtxDomainMarkEx(domain, &a);
	assert_event(0, GT_EV_MARK, 0, "ascii");
	assert_event(1, GT_EV_MARK, 0, "wide");
	assert_event(2, GT_EV_MARK, 0, "registered");
	assert_int_equal(standin.events[0].domain_id, 0);
	assert_string_equal(standin_name(standin.events[1].domain_id), "app");
	assert_int_not_equal(standin.events[2].name_id, 0);

	/* nothing usable is an empty name */
	nvtxMarkEx(NULL);
	nvtxMarkA(NULL);
	nvtxMarkW(NULL);
	a.message.registered = NULL;
	nvtxMarkEx(&a);
	a = attributes(NVTX_MESSAGE_UNKNOWN, (nvtxMessageValue_t){ .ascii = "of no type" });
	nvtxMarkEx(&a);
	a = attributes(NVTX_MESSAGE_TYPE_ASCII, (nvtxMessageValue_t){ .ascii = "beyond size" });
	a.size = offsetof(nvtxEventAttributes_t, message);
	nvtxMarkEx(&a);
	assert_int_equal(standin.event_count, 9);
	for (size_t i = 3; i < 9; i++)
		assert_event(i, GT_EV_MARK, 0, "");
}

static void test_wide(void **state)
{
	static const wchar_t invalid[] = { 'a', 0xd800, 0x110000, 'z', 0 };
	static wchar_t longest[1500];

	(void)state;
	nvtxMarkW(L"\x7f\u00e9\u07ff\u0800\u4e2d\uffff\U0001f600\U0010ffff");
	nvtxMarkW(invalid);
	assert_event(0, GT_EV_MARK, 0,
		     "\x7f\xc3\xa9\xdf\xbf\xe0\xa0\x80\xe4\xb8\xad\xef\xbf\xbf"
		     "\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
	assert_event(1, GT_EV_MARK, 0, "a\xef\xbf\xbd\xef\xbf\xbdz");
	wmemset(longest, 0xe9, ARRAY_SIZE(longest) - 1);
	nvtxMarkW(longest);
	assert_int_not_equal(standin.events[2].name_id, 0);
	assert_int_equal(strlen(standin_name(standin.events[2].name_id)),
			 2 * (ARRAY_SIZE(longest) - 1));
}

static void test_long(void **state)
{
	static char name[GT_INLINE_MAX + 2];

	(void)state;
	memset(name, 'n', GT_INLINE_MAX);
	nvtxMarkA(name);
	assert_int_equal(standin.events[0].name_id, 0);
	assert_event(0, GT_EV_MARK, 0, name);
	name[GT_INLINE_MAX] = '!';
	nvtxMarkA(name);
	assert_int_not_equal(standin.events[1].name_id, 0);
	assert_event(1, GT_EV_MARK, 0, name);
	standin.intern_fails = true;
	nvtxMarkA(name); /* better cut than lost */
	name[GT_INLINE_MAX] = 0;
	assert_int_equal(standin.events[2].name_id, 0);
	assert_event(2, GT_EV_MARK, 0, name);
}

static void test_domains(void **state)
{
	nvtxDomainHandle_t a = nvtxDomainCreateA("domain a"), b = nvtxDomainCreateA("domain b");
	nvtxEventAttributes_t x =
		attributes(NVTX_MESSAGE_TYPE_ASCII, (nvtxMessageValue_t){ .ascii = "x" });

	(void)state;
	assert_true(a && b && a != b);
	assert_ptr_equal(nvtxDomainCreateA("domain a"), a);
	nvtxDomainDestroy(a); /* its handle lives on */
	assert_int_equal(nvtxDomainRangePushEx(a, &x), 0);
	assert_int_equal(nvtxDomainRangePushEx(b, &x), 0);
	assert_int_equal(nvtxRangePushA("x"), 0);
	assert_int_equal(nvtxDomainRangePushEx(NULL, &x), 1); /* the default domain */
	assert_int_equal(nvtxDomainRangePushEx(nvtxDomainCreateA(""), &x), 2);
	assert_int_equal(nvtxDomainRangePop(a), 0);
	assert_int_equal(nvtxDomainRangePop(a), -1);
	assert_int_equal(nvtxDomainRangePop(b), 0);
	assert_int_equal(nvtxRangePop(), 2);
	assert_int_equal(nvtxRangePop(), 1);
	assert_int_equal(nvtxRangePop(), 0);
	assert_string_equal(standin_name(standin.events[0].domain_id), "domain a");
	assert_string_equal(standin_name(standin.events[1].domain_id), "domain b");
	assert_int_equal(standin.events[5].domain_id, standin.events[0].domain_id);

	/* without its name a domain's events would seem the default domain's */
	standin.event_count = 0;
	standin.intern_fails = true;
	a = nvtxDomainCreateA("nameless");
	assert_int_equal(nvtxDomainRangePushEx(a, &x), 0);
	standin.intern_fails = false;
	assert_int_equal(nvtxDomainRangePop(a), 0);
	assert_int_equal(standin.event_count, 0);
	assert_int_equal(nvtxDomainRangePushEx(a, &x), 0);
	assert_int_equal(nvtxDomainRangePop(a), 0);
	assert_int_equal(standin.event_count, 2);
}

static void test_registered(void **state)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("strings");
	nvtxStringHandle_t a, b;

	(void)state;
	standin.recording = false; /* handles made between windows are good in the next one */
	a = nvtxDomainRegisterStringA(domain, "string a");
	b = nvtxDomainRegisterStringW(domain, L"string b");
	assert_true(a && b && a != b);
	assert_ptr_equal(nvtxDomainRegisterStringW(domain, L"string a"), a);
	assert_non_null(nvtxDomainRegisterStringA(domain, NULL));
	assert_int_equal(standin.event_count, 0);
}

static void test_thread_names(void **state)
{
	(void)state;
	standin.recording = false; /* threads are named when they start */
	nvtxNameOsThreadA(4711, "loader");
	nvtxNameOsThreadW(4712, L"writer");
	assert_event(0, GT_EV_THREAD_NAME, 4711, "loader");
	assert_event(1, GT_EV_THREAD_NAME, 4712, "writer");
}

static void *register_many(void *out)
{
	nvtxStringHandle_t *handles = out;
	char name[32];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "shared %d", i);
		handles[i] = nvtxDomainRegisterStringA(NULL, name);
		nvtxRangePushA("in thread"); /* a stack of this thread, freed at its end */
		nvtxRangePop();
	}
	return NULL;
}

static void test_threads(void **state)
{
	static nvtxStringHandle_t handles[4][200];
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, register_many, handles[i]);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 1; i < ARRAY_SIZE(threads); i++)
		assert_memory_equal(handles[i], handles[0], sizeof(handles[0]));
	assert_int_equal(standin.event_count, 4 * 200 * 2);
}

/* ---- the door ---- */

static void test_inert(void **state)
{
	nvtxStringHandle_t string;
	nvtxDomainHandle_t domain;
	nvtxEventAttributes_t a;

	(void)state;
	standin.alive = false;
	nvtx_wanted_marks = NVTX_STEP;
	domain = nvtxDomainCreateA("never seen");
	string = nvtxDomainRegisterStringA(domain, "never seen");
	assert_true(domain && string);
	a = attributes(NVTX_MESSAGE_TYPE_REGISTERED, (nvtxMessageValue_t){ .registered = string });
	assert_int_equal(nvtxDomainRangePushEx(domain, &a), NVTX_NO_PUSH_POP_TRACKING);
	assert_int_equal(nvtxDomainRangePop(domain), NVTX_NO_PUSH_POP_TRACKING);
	assert_int_equal(nvtxRangeStartA("step"), 0);
	nvtxRangeEnd(7);
	nvtxMarkA("step");
	nvtxNameOsThreadA(1, "x");
	assert_int_equal(standin.event_count + (size_t)standin.steps, 0);
}

/* A client of another version of NVTX: fewer functions, some not there. */
static NvtxFunctionPointer small_slots[4];
static NvtxFunctionPointer *small_table[4] = { NULL, NULL, &small_slots[2], &small_slots[3] };

static int small_get_table(NvtxCallbackModule module, NvtxFunctionTable *table, unsigned int *size)
{
	if (module != NVTX_CB_MODULE_CORE)
		return 0;
	*table = small_table;
	*size = 3;
	return 1;
}

static const void *small_client(uint32_t id)
{
	static const NvtxExportTableCallbacks callbacks = { sizeof(callbacks), small_get_table };

	return id == NVTX_ETID_CALLBACKS ? &callbacks : NULL;
}

static const void *old_client(uint32_t id)
{
	static const NvtxExportTableCallbacks callbacks = { 8, small_get_table };

	return id == NVTX_ETID_CALLBACKS ? &callbacks : NULL;
}

static const void *no_client(uint32_t id)
{
	(void)id;
	return NULL;
}

static void test_other_clients(void **state)
{
	(void)state;
	assert_int_equal(InitializeInjectionNvtx2(small_client), 1);
	assert_null(small_slots[1]);
	assert_non_null(small_slots[2]); /* MarkA */
	assert_null(small_slots[3]);     /* beyond the client's size */
	((nvtxMarkA_impl_fntype)small_slots[2])("from the other client");
	assert_event(0, GT_EV_MARK, 0, "from the other client");
	assert_int_equal(InitializeInjectionNvtx2(old_client), 0);
	assert_int_equal(InitializeInjectionNvtx2(no_client), 0);
	assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
	standin.alive = false;
	small_slots[2] = NULL;
	assert_int_equal(InitializeInjectionNvtx2(small_client), 0);
	assert_null(small_slots[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_push_pop),
		TEST(test_recording_changes),
		TEST(test_ranges_of_others),
		TEST(test_pairs_always),
		TEST(test_deep),
		TEST(test_lost_push),
		TEST(test_start_end),
		TEST(test_attributes),
		TEST(test_wide),
		TEST(test_long),
		TEST(test_domains),
		TEST(test_registered),
		TEST(test_thread_names),
		TEST(test_threads),
		TEST(test_inert),
		TEST(test_other_clients),
	};

	use_door();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
