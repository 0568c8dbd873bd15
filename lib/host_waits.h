/*
 * host_waits.h - when threads of the host waited for data or for other ranks, as far as the names
 * of their operators and ranges tell.
 */
#ifndef GT_HOST_WAITS_H
#define GT_HOST_WAITS_H

#include "base.h"
#include "str.h"

enum gt_host_wait {
	GT_WAIT_NONE,
	GT_WAIT_DATA,         /* a DataLoader of PyTorch, or a range that is called so */
	GT_WAIT_COMMUNICATION /* an operator of torch.distributed or of one of its backends */
};

enum gt_host_wait gt_host_wait_of_prefix(struct gt_str name);

/* Of an operator. Files hold millions of them: most are told by their first byte. */
static inline enum gt_host_wait gt_host_wait_of_op(struct gt_str name)
{
	switch (name.len ? name.ptr[0] : 0) {
	case '_':
	case 'c':
	case 'e':
	case 'g':
	case 'm':
	case 'n':
	case 'r':
	case 'u':
	case 'x':
		return gt_host_wait_of_prefix(name);
	default:
		return GT_WAIT_NONE;
	}
}

/* Of a range, whose name people chose. */
enum gt_host_wait gt_host_wait_of_range(struct gt_str name);

struct gt_thread_span {
	int64_t start_ns;
	int64_t end_ns;
	uint32_t thread;
};

struct gt_thread_spans {
	struct gt_thread_span *items;
	size_t count;
	size_t cap;
};

struct gt_host_waits { /* { 0 } is empty */
	struct gt_thread_spans data;
	struct gt_thread_spans either; /* data and communication */
};

/* wait: not GT_WAIT_NONE. 0 or -ENOMEM. */
int gt_host_waits_add(struct gt_host_waits *waits, enum gt_host_wait wait, uint32_t thread,
		      int64_t start_ns, int64_t end_ns);

/* All is there. */
void gt_host_waits_sort(struct gt_host_waits *waits);

/*
 * How long the thread waited between two times. What lies in both kinds, since one calls the other,
 * is data. After gt_host_waits_sort().
 */
struct gt_waited {
	uint64_t data_ns;
	uint64_t communication_ns;
} gt_host_waited(const struct gt_host_waits *waits, uint32_t thread, int64_t from_ns,
		 int64_t to_ns);

void gt_host_waits_release(struct gt_host_waits *waits);

#endif
