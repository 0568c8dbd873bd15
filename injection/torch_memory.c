/*
 * torch_memory.c - torch's allocators call functions of libc10.so, which tell the profiler of their
 * thread. Those calls come to us first, and then go on as before.
 *
 * The CPU's come from c10::ProfiledCPUMemoryReporter, to which the size of a block is told when it
 * is handed out, and no more when it is taken back. It keeps the sizes itself while a profiler
 * wants them, and warns on stderr of each block from before that; so it is left as it is, and the
 * sizes are kept here. The GPU's and those of shared memory are told with the size in both cases.
 *
 * Source: c10/core/{Allocator,CPUAllocator}.{h,cpp} of PyTorch 1.13 to 2.15. The mangled names have
 * the types of the arguments in them; an object's own address comes first.
 */
#include "torch_memory.h"
#include "blocks.h"
#include "env.h"
#include "events.h"
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* PyPI's libraries have these names, Debian's a version behind them. */
#define CORE  "libc10.so"
#define GPU   "libc10_cuda.so"
#define TORCH "libtorch_cpu.so"

/* c10::Device, passed by value */
struct device {
	int8_t type; /* c10::DeviceType */
	int8_t number;
};

static const struct device cpu = { 0, -1 };

enum mode {
	MODE_OFF,
	MODE_TESTING, /* to see one block of the CPU on the thread that began it */
	MODE_ON,
};

static _Atomic int mode; /* enum mode */
static _Atomic bool knows_cpu;
static _Atomic bool knows_gpu;
static _Atomic(const char *) cpu_problem; /* in words, to be said */
static _Atomic(const char *) gpu_problem;

static struct {
	pthread_t thread;
	uintptr_t address; /* of the block; 0: none so far */
	bool passed;       /* and it was taken back */
} test;

/* ---- events ---- */

static bool is_recording(void)
{
	return atomic_load_explicit(&mode, memory_order_relaxed) == MODE_ON && inj_recording();
}

static void put(const struct gt_ev_memory *like, struct device device)
{
	struct gt_ev_memory *ev = inj_reserve(GT_EV_MEMORY, sizeof(*ev));

	if (!ev)
		return;
	ev->address = like->address;
	ev->bytes = like->bytes;
	ev->allocated = like->allocated;
	ev->reserved = like->reserved;
	ev->since_step = like->since_step;
	ev->device_type = device.type;
	ev->device = device.number;
	ev->failed = like->failed;
	ev->reserved2 = 0;
	inj_commit();
}

static void look_at_test(uintptr_t address, bool handed_out)
{
	if (!pthread_equal(pthread_self(), test.thread))
		return;
	if (handed_out && !test.address)
		test.address = address;
	else if (!handed_out && address == test.address)
		test.passed = true;
}

static GT_NOINLINE void put_cpu_block(uintptr_t address, uint64_t bytes)
{
	const struct inj_block block = { .bytes = bytes, .step = inj_step_now() };

	if (!inj_blocks_put(address, &block))
		inj_drop();
	put(&(struct gt_ev_memory){ .address = address,
				    .bytes = (int64_t)bytes,
				    .allocated = inj_blocks_bytes(),
				    .since_step = block.step },
	    cpu);
}

static GT_NOINLINE void put_cpu_block_end(uintptr_t address)
{
	struct inj_block block;

	if (inj_blocks_take(address, &block))
		put(&(struct gt_ev_memory){ .address = address,
					    .bytes = -(int64_t)block.bytes,
					    .allocated = inj_blocks_bytes(),
					    .since_step = block.step },
		    cpu);
}

/* ---- called by torch ---- */

static void (*cpu_new)(void *reporter, void *address, size_t bytes);
static void (*cpu_delete)(void *reporter, void *address);
static void (*cpu_fail)(void *reporter, size_t bytes);
static void (*report)(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
		      struct device device);
static void (*report_fail)(int64_t bytes, uint64_t allocated, uint64_t reserved,
			   struct device device);

/* While nothing is recorded they cost this look. */
static inline bool is_off(void)
{
	return GT_LIKELY(atomic_load_explicit(&mode, memory_order_relaxed) == MODE_OFF);
}

static void on_cpu_new(void *reporter, void *address, size_t bytes)
{
	if (!is_off() && address && bytes) {
		if (is_recording() && knows_cpu)
			put_cpu_block((uintptr_t)address, bytes);
		else if (atomic_load(&mode) == MODE_TESTING)
			look_at_test((uintptr_t)address, true);
	}
	cpu_new(reporter, address, bytes);
}

static void on_cpu_delete(void *reporter, void *address)
{
	if (!is_off() && address) {
		if (is_recording() && knows_cpu)
			put_cpu_block_end((uintptr_t)address);
		else if (atomic_load(&mode) == MODE_TESTING)
			look_at_test((uintptr_t)address, false);
	}
	cpu_delete(reporter, address);
}

static void on_cpu_fail(void *reporter, size_t bytes)
{
	if (!is_off() && is_recording() && knows_cpu)
		put(&(struct gt_ev_memory){ .bytes = (int64_t)bytes,
					    .allocated = inj_blocks_bytes(),
					    .since_step = inj_step_now(),
					    .failed = true },
		    cpu);
	cpu_fail(reporter, bytes);
}

static void on_report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
		      struct device device)
{
	if (!is_off() && is_recording())
		put(&(struct gt_ev_memory){ .address = (uintptr_t)address,
					    .bytes = bytes,
					    .allocated = allocated,
					    .reserved = reserved,
					    .since_step = inj_step_now() },
		    device);
	report(address, bytes, allocated, reserved, device);
}

static void on_report_fail(int64_t bytes, uint64_t allocated, uint64_t reserved,
			   struct device device)
{
	if (!is_off() && is_recording())
		put(&(struct gt_ev_memory){ .bytes = bytes,
					    .allocated = allocated,
					    .reserved = reserved,
					    .since_step = inj_step_now(),
					    .failed = true },
		    device);
	report_fail(bytes, allocated, reserved, device);
}

/* ---- hooks ---- */

struct hook {
	const char *symbols[2]; /* the one or the other */
	void *original;         /* of these pointers */
	void *ours;
};

static const struct hook cpu_hooks[] = {
	{ { "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm" }, &cpu_new, on_cpu_new },
	{ { "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv" }, &cpu_delete, on_cpu_delete },
	{ { "_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm" }, &cpu_fail, on_cpu_fail },
};

/* The totals have no sign since 2.4 or so, and are positive in any case. */
static const struct hook report_hooks[] = {
	{ { "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
	    "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE" },
	  &report,
	  on_report },
	{ { "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
	    "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE" },
	  &report_fail,
	  on_report_fail },
};

/* NULL: its calls come to us. */
static const char *set_hook(const struct inj_library *library, const struct inj_library *core,
			    const struct hook *hook)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(hook->symbols) && hook->symbols[i]; i++) {
		void *original = dlsym(core->handle, hook->symbols[i]);

		if (!original)
			continue;
		memcpy(hook->original, &original, sizeof(original));
		rc = inj_library_redirect(library, hook->symbols[i], original, hook->ours);
		if (!rc)
			return "this build of torch does not call by name what would tell";
		if (rc == -EBUSY)
			return "another tool is in our place";
		return rc > 0 ? NULL : "the tables of its calls cannot be written to";
	}
	return "this version of torch is not known";
}

static const char *set_hooks(const struct inj_library *library, const struct inj_library *core,
			     const struct hook *hooks, size_t count)
{
	const char *why = NULL;

	for (size_t i = 0; i < count && !why; i++)
		why = set_hook(library, core, &hooks[i]);
	return why;
}

static bool asked_for(void)
{
	const char *activities = getenv(GT_ENV_ACTIVITIES), *socket = getenv(GT_ENV_SOCKET);

	/* Where Nsight Systems records there is no arena, and no socket. */
	return activities && strstr(activities, "mem") && socket && *socket;
}

bool torch_memory_test(void)
{
	static bool done;
	struct inj_library core, gpu, torch;
	const char *why;
	uint32_t count;

	if (done || !asked_for())
		return false;
	done = true;
	count = inj_library_find(&core, CORE);
	if (count != 1) {
		atomic_store(&cpu_problem, count ? CORE " is there twice" : "there is no " CORE);
		return false;
	}
	why = set_hooks(&core, &core, cpu_hooks, ARRAY_SIZE(cpu_hooks));
	atomic_store(&cpu_problem, why);
	knows_cpu = !why;
	/* Of this one comes what processes share. */
	if (!why && inj_library_find(&torch, TORCH) == 1)
		set_hook(&torch, &core, &report_hooks[0]);
	count = inj_library_find(&gpu, GPU);
	if (count) { /* torch for the CPU has none */
		why = count == 1 ? set_hooks(&gpu, &core, report_hooks, ARRAY_SIZE(report_hooks))
				 : GPU " is there twice";
		atomic_store(&gpu_problem, why);
		knows_gpu = !why;
	}
	if (!knows_cpu && !knows_gpu)
		return false;
	test.thread = pthread_self();
	atomic_store(&mode, MODE_TESTING);
	return true;
}

void torch_memory_begin(bool at_once)
{
	if (atomic_load(&mode) != MODE_TESTING)
		return;
	if (knows_cpu && !test.passed) {
		knows_cpu = false;
		atomic_store(&cpu_problem, "its blocks are not seen");
	}
	atomic_store(&mode, at_once && !inj_alive() ? MODE_ON : MODE_OFF);
	if (inj_alive())
		inj_control_post();
}

/* ---- asked by the session ---- */

bool torch_memory_known(void)
{
	return atomic_load_explicit(&mode, memory_order_relaxed) != MODE_OFF || knows_cpu ||
	       knows_gpu;
}

static void say(const char *where, _Atomic(const char *) *problem)
{
	const char *why = atomic_exchange(problem, NULL);

	if (why)
		inj_log(GT_LOG_WARN,
			"what PyTorch allocates on the %s will not be in the trace: %s", where,
			why);
}

void inj_memory_follow(bool wanted)
{
	int now = atomic_load(&mode);

	say("CPU", &cpu_problem);
	say("GPU", &gpu_problem);
	if (now == MODE_TESTING || !(knows_cpu || knows_gpu) || wanted == (now == MODE_ON))
		return;
	if (wanted)
		inj_blocks_clear();
	atomic_store(&mode, wanted ? MODE_ON : MODE_OFF);
}
