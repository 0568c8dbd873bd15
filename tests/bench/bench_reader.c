/*
 * bench_reader.c - how fast a trace is read, layer by layer: the best of several runs, in CPU time
 * of this thread, since machines are shared. Usage: bench_reader FILE [RUNS]
 */
#include "base.h"
#include "summary.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define BUF_BYTES (512 << 10)

static char buf[BUF_BYTES];

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * GT_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int drop_event(void *context, const struct gt_trace_event *event)
{
	(void)context;
	(void)event;
	return 0;
}

/* Each returns the bytes of JSON it read. */
static uint64_t inflate_only(const char *path, struct gt_err *err)
{
	struct gt_gz_reader *gz;
	uint64_t bytes = 0;
	ssize_t n;

	if (gt_gz_open(&gz, path, err) < 0)
		return 0;
	while ((n = gt_gz_read(gz, buf, sizeof(buf), err)) > 0)
		bytes += (uint64_t)n;
	gt_gz_close(gz);
	return bytes;
}

static uint64_t events_only(const char *path, struct gt_err *err)
{
	struct gt_trace_hooks hooks = { .event = drop_event };
	struct gt_trace_stats stats = { 0 };
	struct gt_gz_reader *gz;

	if (gt_gz_open(&gz, path, err) < 0)
		return 0;
	if (gt_trace_read(gz, &hooks, &stats, err) < 0)
		stats.bytes = 0;
	gt_gz_close(gz);
	return stats.bytes;
}

static uint64_t whole_summary(const char *path, struct gt_err *err)
{
	struct gt_summary_style style = { .format = GT_SUMMARY_JSON };
	struct gt_summary *summary;
	struct gt_buf out = { 0 };
	uint64_t bytes;

	if (gt_summary_load(&summary, path, NULL, err) < 0)
		return 0;
	gt_summary_print(summary, &style, &out);
	bytes = summary->read.bytes;
	gt_buf_release(&out);
	gt_summary_free(summary);
	return bytes;
}

static const struct {
	const char *name;
	uint64_t (*run)(const char *path, struct gt_err *err);
} layers[] = {
	{ "inflate", inflate_only },
	{ "events", events_only },
	{ "summary", whole_summary },
};

int main(int argc, char **argv)
{
	int runs = argc > 2 ? atoi(argv[2]) : 10;
	struct rusage usage;

	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE [RUNS]\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++) {
		uint64_t best_ns = UINT64_MAX, bytes = 0;

		for (int run = 0; run < runs; run++) {
			struct gt_err err = { 0 };
			uint64_t start_ns = cpu_ns();

			bytes = layers[i].run(argv[1], &err);
			best_ns = GT_MIN(best_ns, cpu_ns() - start_ns);
			if (!bytes) {
				fprintf(stderr, "%s: %s\n", argv[1], err.msg);
				return 1;
			}
		}
		getrusage(RUSAGE_SELF, &usage);
		printf("%-8s %7.1f ms  %5.2f GB/s of JSON a core  %6ld KiB peak\n", layers[i].name,
		       (double)best_ns / 1e6, (double)bytes / (double)best_ns, usage.ru_maxrss);
	}
	return 0;
}
