/*
 * floor.c - the least a CUPTI tracer can do: GPU activity kinds only, records thrown away. The
 * bench compares gtrace with it. Loaded by ctypes.
 */
#include <dlfcn.h>
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

int InitializeInjection(void);
int floor_init(void);
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

/* As CUDA_INJECTION64_PATH: the floor from the start of a program to its end. */
int InitializeInjection(void)
{
	if (!floor_init())
		floor_on();
	return 1;
}

long floor_records(void)
{
	return records;
}
