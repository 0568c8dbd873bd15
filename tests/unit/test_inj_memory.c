/* What torch's allocators do, by a fake libc10.so and libc10_cuda.so. */
#include "ops_rig.h"
#include "blocks.h"
#include "fake_c10.h"
#include "torch_memory.h"

#include <sys/mman.h>

static char folder[4096];
static struct fake_c10 *c10;
static void (*cpu_new)(void *address, size_t bytes);
static void (*cpu_delete)(void *address);
static void (*cpu_fail)(size_t bytes);
static void (*gpu_report)(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
			  int8_t number);
static void (*gpu_fail)(int64_t bytes, uint64_t allocated, uint64_t reserved, int8_t number);

static char blocks[4]; /* their addresses are those of blocks */

static void *open_beside(const char *name)
{
	char path[sizeof(folder) + 64];
	void *handle;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	check(handle);
	return handle;
}

/* Torch with a libc10.so of this kind. */
static void load_torch(const char *kind)
{
	char name[64];
	void *core, *gpu;

	snprintf(name, sizeof(name), "%s/libc10.so", kind);
	core = open_beside(name);
	gpu = open_beside("libc10_cuda.so");
	c10 = dlsym(core, "fake_c10");
	cpu_new = (typeof(cpu_new))dlsym(core, "fake_cpu_new");
	cpu_delete = (typeof(cpu_delete))dlsym(core, "fake_cpu_delete");
	cpu_fail = (typeof(cpu_fail))dlsym(core, "fake_cpu_fail");
	gpu_report = (typeof(gpu_report))dlsym(gpu, "fake_gpu_report");
	gpu_fail = (typeof(gpu_fail))dlsym(gpu, "fake_gpu_fail");
	check(c10 && cpu_new && cpu_delete && cpu_fail && gpu_report && gpu_fail);
	setenv("GTRACE_ACTIVITIES", "gpu,mem", 1);
	setenv("GTRACE_SOCKET", "/nobody/is/there", 1);
}

/* As the Python hook does it. */
static void test_allocators(bool at_once)
{
	check(gtrace_inject_ops_test() == 1);
	cpu_new(&blocks[0], 4);
	cpu_delete(&blocks[0]);
	gtrace_inject_ops_begin(at_once);
}

/* A session that records, and allocators that are known. */
static void record(const char *kind)
{
	load_torch(kind);
	start_session(true);
	test_allocators(false);
	inj_memory_follow(true);
}

static const struct gt_ev_memory *check_memory(const void *address, int64_t bytes)
{
	const struct gt_ev_memory *ev = next_event();

	check(ev && ev->ev.type == GT_EV_MEMORY && ev->ev.size_bytes == sizeof(*ev));
	check(ev->address == (uintptr_t)address && ev->bytes == bytes && !ev->reserved2);
	return ev;
}

static void check_cpu(const void *address, int64_t bytes, uint64_t allocated)
{
	const struct gt_ev_memory *ev = check_memory(address, bytes);

	check(!ev->device_type && ev->device == -1 && !ev->failed);
	check(ev->allocated == allocated && !ev->reserved);
}

static void the_cpus(void **state)
{
	static const char *const kinds[] = { "lazy", "now", "no-plt" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		in_process({
			record(kinds[i]);
			cpu_new(&blocks[1], 100);
			cpu_new(&blocks[2], 30);
			cpu_delete(&blocks[1]);
			cpu_delete(&blocks[3]); /* from before */
			cpu_new(NULL, 0);
			check_cpu(&blocks[1], 100, 100);
			check_cpu(&blocks[2], 30, 130);
			check_cpu(&blocks[1], -100, 30);
			check(!next_event());
			check(c10->handed_out == 4 && c10->taken_back == 3 && !c10->reports);
		});
	}
}

static void since_which_step(void **state)
{
	(void)state;
	in_process({
		const struct gt_ev_memory *ev;

		record("lazy");
		atomic_store(&inj_arena->step, 3);
		cpu_new(&blocks[1], 100);
		atomic_store(&inj_arena->step, 5);
		cpu_delete(&blocks[1]);
		gpu_report(&blocks[2], -512, 0, 0, 0);
		ev = check_memory(&blocks[1], 100);
		check(ev->ev.step == 3 && ev->since_step == 3);
		ev = check_memory(&blocks[1], -100);
		check(ev->ev.step == 5 && ev->since_step == 3);
		ev = check_memory(&blocks[2], -512); /* which needs no beginning */
		check(ev->ev.step == 5 && ev->since_step == 5);
	});
}

static void the_gpus(void **state)
{
	(void)state;
	in_process({
		const struct gt_ev_memory *ev;

		record("lazy");
		gpu_report(&blocks[1], 1024, 4096, UINT64_C(1) << 33, 3);
		ev = check_memory(&blocks[1], 1024);
		check(ev->device_type == 1 && ev->device == 3 && !ev->failed);
		check(ev->allocated == 4096 && ev->reserved == UINT64_C(1) << 33);
		check(c10->reports == 1 && c10->address == &blocks[1] && c10->bytes == 1024);
		check(c10->allocated == 4096 && c10->reserved == UINT64_C(1) << 33);
		check(c10->type == 1 && c10->number == 3);
		check(!next_event());
	});
}

static void no_memory(void **state)
{
	(void)state;
	in_process({
		const struct gt_ev_memory *ev;

		record("now");
		cpu_fail(1 << 30);
		gpu_fail(1 << 20, 5, 6, 2);
		ev = check_memory(NULL, 1 << 30);
		check(ev->failed == 1 && !ev->device_type && ev->device == -1);
		ev = check_memory(NULL, 1 << 20);
		check(ev->failed == 1 && ev->device_type == 1 && ev->device == 2);
		check(ev->allocated == 5 && ev->reserved == 6);
		check(c10->failures == 1 && c10->report_failures == 1 && c10->number == 2);
	});
}

static void only_while_it_is_wanted(void **state)
{
	(void)state;
	in_process({
		record("lazy");
		inj_memory_follow(false);
		cpu_new(&blocks[1], 100);
		gpu_report(&blocks[2], 100, 100, 100, 0);
		check(!next_event() && c10->handed_out == 2 && c10->reports == 1);
		inj_memory_follow(true);
		atomic_store(&inj_live.recording, 0); /* between windows */
		cpu_new(&blocks[2], 100);
		check(!next_event());
		atomic_store(&inj_live.recording, 1);
		cpu_delete(&blocks[1]);
		cpu_delete(&blocks[2]);
		check(!next_event());
		cpu_new(&blocks[3], 7);
		inj_memory_follow(true); /* as it is: nothing is forgotten */
		cpu_delete(&blocks[3]);
		check_cpu(&blocks[3], 7, 7);
		check_cpu(&blocks[3], -7, 0);
		cpu_new(&blocks[3], 8);
		inj_memory_follow(false);
		inj_memory_follow(true); /* who knows what was taken back meanwhile */
		cpu_delete(&blocks[3]);
		check_cpu(&blocks[3], 8, 8);
		check(!next_event());
	});
}

static void not_in_a_child(void **state)
{
	(void)state;
	in_process({
		pid_t child;
		int status;

		check(!madvise(&inj_live, sizeof(inj_live), MADV_WIPEONFORK));
		record("lazy");
		child = fork();
		if (!child) {
			cpu_new(&blocks[1], 1);
			gpu_report(&blocks[2], 1, 1, 1, 0);
			_exit(next_event() ? 1 : 0);
		}
		check(waitpid(child, &status, 0) == child && !status);
	});
}

/* What the first operator is to find, when it starts the session. */
static void before_the_session(void **state)
{
	(void)state;
	in_process({
		load_torch("lazy");
		test_allocators(true);
		cpu_new(&blocks[1], 1);
		start_session(true);
		cpu_new(&blocks[2], 2);
		check_cpu(&blocks[2], 2, 2);
		check(!next_event());
	});
	in_process({ /* nor in a worker, until it starts one */
		     load_torch("lazy");
		     test_allocators(false);
		     start_session(true);
		     cpu_new(&blocks[2], 2);
		     check(!next_event());
	});
}

static void room_for_events(void **state)
{
	(void)state;
	in_process({
		load_torch("lazy");
		check(!inj_ops_observed());
		test_allocators(false);
		check(inj_ops_observed()); /* which get as much as operators do */
	});
	in_process({
		record("lazy");
		for (uintptr_t i = 1; i <= 100000; i++)
			check(inj_blocks_put(i * 64, &(struct inj_block){ 0 }) || i > 1000);
		check(!atomic_load(&inj_arena->dropped_events));
		cpu_new(&blocks[1], 2);
		/* Its end is lost. */
		check_cpu(&blocks[1], 2, 0);
		check(atomic_load(&inj_arena->dropped_events) == 1);
	});
}

static void not_asked_for(void **state)
{
	(void)state;
	in_process({ /* Nsight Systems records */
		     load_torch("lazy");
		     unsetenv("GTRACE_SOCKET");
		     check(!gtrace_inject_ops_test());
		     cpu_new(&blocks[1], 2);
		     check(c10->handed_out == 1);
	});
	in_process({
		load_torch("lazy");
		setenv("GTRACE_ACTIVITIES", "gpu", 1);
		start_session(true);
		check(!gtrace_inject_ops_test());
		inj_memory_follow(true);
		cpu_new(&blocks[1], 2);
		gpu_report(&blocks[2], 100, 100, 100, 0);
		check(!next_event() && c10->handed_out == 1 && c10->reports == 1);
	});
}

/* What is told on stderr, where there is no collector. */
static void check_told(const char *text)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), kept = dup(STDERR_FILENO);
	char told[1024] = "";

	check(fd >= 0 && kept >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	inj_memory_follow(true);
	inj_memory_follow(true); /* once */
	check(dup2(kept, STDERR_FILENO) >= 0);
	check(pread(fd, told, sizeof(told) - 1, 0) >= 0);
	check(!strcmp(told, text));
	close(kept);
	close(fd);
}

static void calls_that_are_bound(void **state)
{
	(void)state;
	in_process({
		load_torch("bound");
		start_session(true);
		check(gtrace_inject_ops_test() == 1); /* the GPU's are not */
		gtrace_inject_ops_begin(false);
		check_told("gtrace: warning: what PyTorch allocates on the CPU will not be in the "
			   "trace: this build of torch does not call by name what would tell\n");
		cpu_new(&blocks[1], 2);
		cpu_fail(2);
		check(!next_event() && c10->handed_out == 1);
		gpu_report(&blocks[2], 100, 100, 100, 0);
		check_memory(&blocks[2], 100);
	});
}

static void test_must_be_seen(void **state)
{
	(void)state;
	in_process({
		load_torch("lazy");
		start_session(true);
		check(gtrace_inject_ops_test() == 1);
		cpu_new(&blocks[1], 4);
		cpu_delete(&blocks[2]); /* another one */
		gtrace_inject_ops_begin(true);
		check_told("gtrace: warning: what PyTorch allocates on the CPU will not be in the "
			   "trace: its blocks are not seen\n");
		cpu_new(&blocks[1], 4);
		cpu_delete(&blocks[1]);
		check(!next_event());
		gpu_report(&blocks[2], 100, 100, 100, 0);
		check_memory(&blocks[2], 100);
	});
}

static void two_copies(void **state)
{
	(void)state;
	in_process({
		load_torch("lazy");
		open_beside("now/libc10.so");
		start_session(true);
		check(!gtrace_inject_ops_test());
		check_told("gtrace: warning: what PyTorch allocates on the CPU will not be in the "
			   "trace: libc10.so is there twice\n");
		cpu_new(&blocks[1], 4);
		check(!next_event() && c10->handed_out == 1);
	});
	in_process({
		setenv("GTRACE_ACTIVITIES", "cpu,mem", 1);
		setenv("GTRACE_SOCKET", "/nobody/is/there", 1);
		start_session(true);
		gtrace_inject_ops_test();
		check_told("gtrace: warning: what PyTorch allocates on the CPU will not be in the "
			   "trace: there is no libc10.so\n");
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cpus),
		cmocka_unit_test(since_which_step),
		cmocka_unit_test(the_gpus),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(only_while_it_is_wanted),
		cmocka_unit_test(not_in_a_child),
		cmocka_unit_test(before_the_session),
		cmocka_unit_test(room_for_events),
		cmocka_unit_test(not_asked_for),
		cmocka_unit_test(calls_that_are_bound),
		cmocka_unit_test(test_must_be_seen),
		cmocka_unit_test(two_copies),
	};

	(void)argc;
	find_library(argv[0]);
	snprintf(folder, sizeof(folder), "%.*s/fake-c10", (int)(strrchr(argv[0], '/') - argv[0]),
		 argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
