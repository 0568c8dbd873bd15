#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEPS_MAX  4096
#define COUNTS_MAX 64

struct count { /* of one name, in one step, of one thread (0: any) */
	char name[256];
	uint32_t tid;
	uint64_t n;
};

struct counts {
	struct count item[COUNTS_MAX];
	size_t used;
};

struct step {
	struct counts kernels;
	struct counts ranges;
	struct counts calls[2]; /* by enum truth_call */
	uint64_t copies[TRUTH_COPY_MAX];
	uint64_t bytes[TRUTH_COPY_MAX];
	uint64_t captured;
	uint64_t silent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct step *steps[STEPS_MAX];
static uint64_t now;

/* Lock held. */
static struct step *current(void)
{
	uint64_t at = GT_MIN(now, STEPS_MAX - 1);

	if (!steps[at])
		steps[at] = calloc(1, sizeof(*steps[at]));
	if (!steps[at])
		abort();
	return steps[at];
}

static void add(struct counts *counts, const char *name, uint32_t tid, uint64_t n)
{
	struct count *item = counts->item;

	while (item < counts->item + counts->used &&
	       (item->tid != tid || strcmp(item->name, name) != 0))
		item++;
	if (item == counts->item + counts->used) {
		if (counts->used == COUNTS_MAX)
			abort();
		counts->used++;
		item->tid = tid;
		snprintf(item->name, sizeof(item->name), "%s", name);
	}
	item->n += n;
}

void truth_kernel(const char *name, uint64_t count)
{
	pthread_mutex_lock(&lock);
	add(&current()->kernels, name, 0, count);
	pthread_mutex_unlock(&lock);
}

void truth_range(const char *name)
{
	pthread_mutex_lock(&lock);
	add(&current()->ranges, name, 0, 1);
	pthread_mutex_unlock(&lock);
}

void truth_call(enum truth_call domain, const char *function)
{
	pthread_mutex_lock(&lock);
	add(&current()->calls[domain], function, (uint32_t)syscall(SYS_gettid), 1);
	pthread_mutex_unlock(&lock);
}

void truth_copy(enum truth_copy kind, uint64_t bytes, uint64_t count)
{
	pthread_mutex_lock(&lock);
	current()->copies[kind] += count;
	current()->bytes[kind] += bytes * count;
	pthread_mutex_unlock(&lock);
}

void truth_captured(void)
{
	pthread_mutex_lock(&lock);
	current()->captured++;
	pthread_mutex_unlock(&lock);
}

void truth_silent(void)
{
	pthread_mutex_lock(&lock);
	current()->silent++;
	pthread_mutex_unlock(&lock);
}

uint64_t truth_next_step(void)
{
	uint64_t step;

	pthread_mutex_lock(&lock);
	step = ++now;
	pthread_mutex_unlock(&lock);
	return step;
}

/* ---- JSON ---- */

/* Names may be any bytes: each above 0x7e is written as the code point of the same number. */
static void write_string(FILE *file, const char *text)
{
	fputc('"', file);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\')
			fprintf(file, "\\u%04x", *c);
		else
			fputc(*c, file);
	}
	fputc('"', file);
}

static void write_counts(FILE *file, const char *key, const struct counts *counts)
{
	fprintf(file, ", \"%s\": {", key);
	for (size_t i = 0; i < counts->used; i++) {
		fputs(i ? ", " : "", file);
		write_string(file, counts->item[i].name);
		fprintf(file, ": %llu", (unsigned long long)counts->item[i].n);
	}
	fputc('}', file);
}

static void write_calls(FILE *file, const char *key, const struct counts *counts)
{
	fprintf(file, ", \"%s\": [", key);
	for (size_t i = 0; i < counts->used; i++)
		fprintf(file, "%s[%u, \"%s\", %llu]", i ? ", " : "", counts->item[i].tid,
			counts->item[i].name, (unsigned long long)counts->item[i].n);
	fputc(']', file);
}

static void write_step(FILE *file, uint64_t number, const struct step *step)
{
	static const char *const kinds[] = { "HtoD", "DtoH", "DtoD", "PtoP", "Memset" };

	fprintf(file, "%s\n  {\"step\": %llu", number ? "," : "", (unsigned long long)number);
	write_counts(file, "kernels", &step->kernels);
	write_counts(file, "ranges", &step->ranges);
	write_calls(file, "runtime_calls", &step->calls[TRUTH_RUNTIME]);
	write_calls(file, "driver_calls", &step->calls[TRUTH_DRIVER]);
	for (size_t i = 0; i < TRUTH_COPY_MAX; i++)
		fprintf(file, ", \"%s\": [%llu, %llu]", kinds[i],
			(unsigned long long)step->copies[i], (unsigned long long)step->bytes[i]);
	fprintf(file, ", \"captured\": %llu, \"silent\": %llu}", (unsigned long long)step->captured,
		(unsigned long long)step->silent);
}

int truth_write(const char *path, const char *marks, const char *const *demangled)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -1;
	fprintf(file, "{\"pid\": %d, \"marks\": \"%s\", \"names\": {", getpid(), marks);
	for (size_t i = 0; demangled[i]; i += 2) {
		fputs(i ? ", " : "", file);
		write_string(file, demangled[i]);
		fputs(": ", file);
		write_string(file, demangled[i + 1]);
	}
	fputs("}, \"steps\": [", file);
	pthread_mutex_lock(&lock);
	for (uint64_t i = 0; i <= GT_MIN(now, STEPS_MAX - 1); i++) {
		static const struct step nothing;

		write_step(file, i, steps[i] ? steps[i] : &nothing);
	}
	pthread_mutex_unlock(&lock);
	fputs("\n]}\n", file);
	return fclose(file);
}
