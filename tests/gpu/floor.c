/*
 * floor.c - the least a CUPTI tracer can do: GPU activity kinds only, records thrown away; and the
 * least that can see torch's operators: an observer that does nothing. The bench compares gtrace
 * with both.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cupti.h>

#define BUFFER_BYTES (1u << 20)
#define BUFFERS      64

static uint8_t *buffers[BUFFERS];
static unsigned int next_buffer;
static long records;

static __typeof__(cuptiActivityRegisterCallbacks) *register_callbacks;
static __typeof__(cuptiActivityEnable) *enable;
static __typeof__(cuptiActivityDisable) *disable;
static __typeof__(cuptiActivityFlushAll) *flush;
static __typeof__(cuptiActivityGetNextRecord) *next_record;

static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
					    CUPTI_ACTIVITY_KIND_MEMCPY,
					    CUPTI_ACTIVITY_KIND_MEMSET };

static void requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	unsigned int slot = __atomic_fetch_add(&next_buffer, 1, __ATOMIC_RELAXED) % BUFFERS;

	if (!buffers[slot])
		buffers[slot] = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	*buffer = buffers[slot];
	*size = BUFFER_BYTES;
	*max_records = 0;
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
		      size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context, (void)stream, (void)size;
	while (valid && next_record(buffer, valid, &record) == CUPTI_SUCCESS)
		__atomic_fetch_add(&records, 1, __ATOMIC_RELAXED);
}

/* at::RecordFunctionCallback of PyTorch 2; start returns nothing that torch has to hand back. */
struct observer {
	void **(*start)(void **ret, const void *function);
	void (*end)(const void *function, void *context);
	double sampling_probability;
	bool scopes[10];
	bool needs_inputs;
	bool needs_outputs;
	bool needs_ids;
};

static void (*resume)(uint64_t handle);
static void (*suspend)(uint64_t handle);
static uint64_t observer;
static long operators;

static void **op_begins(void **ret, const void *function)
{
	(void)function;
	operators++;
	*ret = NULL;
	return ret;
}

static void op_ends(const void *function, void *context)
{
	(void)function, (void)context;
}

int floor_init(void);
int floor_observe(int inputs);
void floor_observer(int on);
long floor_operators(void);
int floor_on(void);
int floor_off(void);
long floor_records(void);

int floor_init(void)
{
	void *lib = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);

	if (!lib)
		lib = dlopen("libcupti.so.13", RTLD_NOW);
	if (!lib)
		return -1;
	register_callbacks = dlsym(lib, "cuptiActivityRegisterCallbacks");
	enable = dlsym(lib, "cuptiActivityEnable");
	disable = dlsym(lib, "cuptiActivityDisable");
	flush = dlsym(lib, "cuptiActivityFlushAll");
	next_record = dlsym(lib, "cuptiActivityGetNextRecord");
	return register_callbacks && enable && disable && flush && next_record ? 0 : -1;
}

/* Registers the observer, to be switched on. 0: done. */
int floor_observe(int inputs)
{
	struct observer callback = { .start = op_begins,
				     .end = op_ends,
				     .sampling_probability = 1,
				     .needs_inputs = inputs };
	void *torch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
	uint64_t (*add)(struct observer);

	if (!torch)
		return -1;
	add = dlsym(torch, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	resume = dlsym(torch, "_ZN2at16reenableCallbackEm");
	suspend = dlsym(torch, "_ZN2at15disableCallbackEm");
	if (!add || !resume || !suspend)
		return -1;
	memset(callback.scopes, true, sizeof(callback.scopes));
	observer = add(callback);
	suspend(observer);
	return 0;
}

void floor_observer(int on)
{
	(on ? resume : suspend)(observer);
}

/* Seen so far, about: threads do not wait for one another here. */
long floor_operators(void)
{
	return operators;
}

int floor_on(void)
{
	int res = register_callbacks(requested, completed);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		res |= enable(kinds[i]);
	return res;
}

int floor_off(void)
{
	int res = flush(0);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		res |= disable(kinds[i]);
	return res | flush(0);
}

long floor_records(void)
{
	return records;
}
