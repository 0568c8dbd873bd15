/*
 * bench_writer.c - how fast and how small a trace is written: kernels with their launches and
 * arrows, as a training loop makes them, from the decoded records to the complete file.
 *
 * usage: bench_writer DIR [EVENTS]
 */
#include "base.h"
#include "../unit/random.h"
#include "trace_writer.h"
#include "wire.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BASE              UINT64_C(1790857026000000000)
#define KERNELS           60  /* different ones */
#define STEP_KERNELS      452 /* a step's launches, as many as a small GPT's */
#define EVENTS_PER_KERNEL 4
#define FLUSH_NS          (100 * GT_NSEC_PER_MSEC)

static struct {
	char name[400];
	struct gt_gpu_op op;
	uint64_t typical_ns;
} kernels[KERNELS];

static unsigned int sequence[STEP_KERNELS];

/* Names like those of PyTorch's, cuBLAS's and Triton's kernels, mangled where they are. */
static void make_kernels(void)
{
	static const char *const types[] = { "f", "N3c108BFloat16E", "N3c104HalfE", "l", "b" };

	for (unsigned int i = 0; i < KERNELS; i++) {
		const char *type = types[i % ARRAY_SIZE(types)];

		if (i % 3 == 0)
			snprintf(kernels[i].name, sizeof(kernels[i].name),
				 "nvjet_sm90_tst_%ux%u_64x%u_%ux1_v_bz_bias_TNT", 64 << i % 3,
				 24 + 8 * (i % 7), 13 + i % 5, 1 + i % 4);
		else if (i % 10 == 1)
			snprintf(kernels[i].name, sizeof(kernels[i].name),
				 "triton_poi_fused_add_mul_native_layer_norm_%u", i);
		else
			snprintf(kernels[i].name, sizeof(kernels[i].name),
				 "_ZN2at6native29vectorized_elementwise_kernelILi%uENS0_"
				 "11CUDAFunctor"
				 "I%sEESt5arrayIPcLm%uEEEEviT0_T1_",
				 1 << i % 4, type, 2 + i % 3);
		kernels[i].op = (struct gt_gpu_op){
			.kind = GT_GPU_KERNEL,
			.context = 1,
			.stream = i % 20 ? 7 : 20,
			.channel = 3,
			.channel_type = 1,
			.grid = { 1 + (uint32_t)random_below(2000), 1 + i % 12, 1 },
			.block = { 32u << i % 5, 1, 1 },
			.registers_per_thread = 16 + 8 * (i % 28),
			.dynamic_shared_bytes = i % 3 ? 0 : 197076,
		};
		kernels[i].typical_ns = 1000 + random_below(12000);
	}
	for (unsigned int i = 0; i < STEP_KERNELS; i++) /* layers repeat */
		sequence[i] = i < 40 || i > STEP_KERNELS - 60 ? (unsigned int)random_below(KERNELS)
							      : sequence[i - 28];
}

static struct gt_trace *create(const char *path)
{
	static const struct gt_msg_device device = {
		.compute_major = 9,
		.max_threads_per_block = 1024,
		.max_threads_per_multiprocessor = 2048,
		.regs_per_block = 65536,
		.regs_per_multiprocessor = 65536,
		.warp_size = 32,
		.num_sms = 132,
		.shared_mem_per_block = 49152,
		.shared_mem_per_block_optin = 232448,
		.shared_mem_per_multiprocessor = 233472,
		.name = "a GPU",
	};
	const struct gt_trace_meta meta = {
		.pid = 1000,
		.cycle = 1,
		.comm = "bench",
		.devices = &device,
		.device_count = 1,
	};
	struct gt_trace *trace;
	struct gt_err err;

	if (gt_trace_create(&trace, path, GT_TRACE_OVERWRITE, BASE, &meta, &err)) {
		fprintf(stderr, "bench_writer: %s\n", err.msg);
		exit(1);
	}
	return trace;
}

static void check(int code, const struct gt_err *err)
{
	if (code) {
		fprintf(stderr, "bench_writer: %s\n", err->msg);
		exit(1);
	}
}

static void write_events(struct gt_trace *trace, uint64_t count)
{
	const struct gt_trace_health health = { .complete = true };
	uint64_t host_ns = BASE + 1000000, gpu_ns = host_ns, flush_ns = host_ns + FLUSH_NS, i;
	uint64_t step_ns = host_ns, step = 0;
	uint32_t correlation = 1000;
	struct gt_err err = { 0 };

	for (i = 0; i < count / EVENTS_PER_KERNEL; i++) {
		unsigned int k = sequence[i % STEP_KERNELS];
		struct gt_gpu_op op = kernels[k].op;
		struct gt_trace_call call = {
			.tid = i % STEP_KERNELS < STEP_KERNELS / 2 ? 1000 : 1021,
			.cbid = k % 3 ? 211 : 652,
			.runtime = k % 3,
			.launches = true,
			.name = k % 3 ? GT_STR("cudaLaunchKernel") : GT_STR("cuLaunchKernelEx"),
			.external_id = step + 1,
		};

		if (i % STEP_KERNELS == STEP_KERNELS - 1) {
			char name[32];
			const struct gt_trace_range range = {
				.tid = 1000,
				.is_step = true,
				.start_ns = step_ns,
				.end_ns = host_ns,
				.name = { name,
					  (size_t)snprintf(name, sizeof(name), "ProfilerStep#%llu",
							   (unsigned long long)step) },
				.external_id = step + 1,
			};

			check(gt_trace_range(trace, &range), &err);
			step_ns = host_ns;
			step++;
		}
		host_ns += 8000 + random_below(40000);
		call.start_ns = host_ns;
		call.end_ns = host_ns + 4000 + random_below(6000);
		host_ns = call.end_ns;
		gpu_ns = GT_MAX(gpu_ns + 600, call.start_ns + 5000 + random_below(3000));
		op.start_ns = gpu_ns;
		gpu_ns += kernels[k].typical_ns + random_below(kernels[k].typical_ns / 8);
		op.end_ns = gpu_ns;
		correlation += 1 + (uint32_t)random_below(3);
		call.correlation = op.correlation = correlation;
		check(gt_trace_call(trace, &call), &err);
		check(gt_trace_gpu(trace, &op, gt_str_of(kernels[k].name), &call), &err);
		if (host_ns >= flush_ns) {
			check(gt_trace_flush(trace, &health, &err), &err);
			flush_ns = host_ns + FLUSH_NS;
		}
	}
}

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const struct gt_trace_health health = { .complete = true };
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000, events;
	double wall, cpu;
	struct gt_trace *trace;
	struct gt_err err = { 0 };
	struct stat st;
	char path[4096];

	if (argc < 2) {
		fprintf(stderr, "usage: bench_writer DIR [EVENTS]\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/bench_writer.json.gz", argv[1]);
	make_kernels();
	wall = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	trace = create(path);
	write_events(trace, count);
	events = gt_trace_event_count(trace);
	check(gt_trace_close(trace, &health, &err), &err);
	wall = now(CLOCK_MONOTONIC) - wall;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (stat(path, &st) < 0) {
		perror(path);
		return 1;
	}
	printf("%llu events in %.3f s (%.3f s of CPU): %.2f million a second of CPU, "
	       "%.2f bytes an event\n",
	       (unsigned long long)events, wall, cpu, (double)events / cpu / 1e6,
	       (double)st.st_size / (double)events);
	unlink(path);
	return 0;
}
