#include "base.h"
#include "fake_recorder.h"

#include <stdlib.h>
#include <unistd.h>

struct fake_recorder fake;

static uv_mutex_t lock;
static uv_once_t once = UV_ONCE_INIT;

struct gt_recorder {
	struct gt_recorder_config config;
	struct gt_msg_hello hello;
	int arena_fd;
	struct gt_plans plans;
	struct gt_plan held;
	bool stopped;
	uint32_t stopped_step;
};

static void init(void)
{
	uv_mutex_init(&lock);
}

void fake_recorder_reset(void)
{
	uv_once(&once, init);
	memset(&fake, 0, sizeof(fake));
}

void fake_recorder_say(struct gt_recorder_report report)
{
	uv_mutex_lock(&lock);
	fake.report = report;
	uv_mutex_unlock(&lock);
}

int gt_recorder_new(struct gt_recorder **ret, int arena_fd, const struct gt_msg_hello *hello,
		    const struct gt_recorder_config *config, struct gt_err *err)
{
	if (fake.refuse) {
		close(arena_fd);
		return gt_err_set(err, fake.refuse, "it lies");
	}
	*ret = calloc(1, sizeof(**ret));
	(*ret)->config = *config;
	(*ret)->hello = *hello;
	(*ret)->arena_fd = arena_fd;
	fake.alive++;
	return 0;
}

void gt_recorder_phase(struct gt_recorder *rec, const struct gt_msg_phase *phase)
{
	(void)rec;
	(void)phase;
	fake.phases++;
	fake.interleaved |= fake.busy > 0;
}

void gt_recorder_device(struct gt_recorder *rec, const struct gt_msg_device *device)
{
	(void)rec;
	(void)device;
	fake.devices++;
	fake.interleaved |= fake.busy > 0;
}

void gt_recorder_hold(struct gt_recorder *rec, const struct gt_plan *plan)
{
	rec->held = *plan;
	fake.held = plan->active;
	fake.interleaved |= fake.busy > 0;
}

void gt_recorder_decide(struct gt_recorder *rec, bool commit)
{
	fake.plans_committed += commit;
	if (commit)
		gt_plans_add(&rec->plans, &rec->held);
	fake.held = false;
	fake.interleaved |= fake.busy > 0;
}

const struct gt_plans *gt_recorder_plans(const struct gt_recorder *rec)
{
	return &rec->plans;
}

uint32_t gt_recorder_step(const struct gt_recorder *rec)
{
	return rec->stopped ? rec->stopped_step : fake.report.step;
}

bool gt_recorder_has_ended(const struct gt_recorder *rec)
{
	(void)rec;
	return fake.ended;
}

void gt_recorder_stop(struct gt_recorder *rec, const char *by, uint64_t now_ns)
{
	(void)by;
	(void)now_ns;
	rec->stopped = true;
	rec->stopped_step = fake.report.step;
}

void gt_recorder_wake(const struct gt_recorder *rec)
{
	(void)rec;
	fake.wakes++;
}

void gt_recorder_rank(struct gt_recorder *rec, const struct gt_msg_rank *rank)
{
	(void)rec;
	fake.rank = rank->rank;
	fake.interleaved |= fake.busy > 0;
}

static void work(struct gt_recorder *rec, struct gt_recorder_report *report)
{
	const struct gt_recorder_config *config = &rec->config;
	static struct gt_recorder_closed failed;
	struct gt_err err;
	bool overwrite;

	if (fake.entered) {
		fake.busy++;
		uv_sem_post(fake.entered);
		uv_sem_wait(fake.leave);
		fake.busy--;
	}
	uv_mutex_lock(&lock);
	config->path_for(config->ctx, &rec->hello, 1, fake.path, sizeof(fake.path), &overwrite,
			 &err);
	*report = fake.report;
	if (fake.rc) {
		gt_err_set(&failed.err, fake.rc, "disk full");
		report->closed = &failed;
		report->closed_count = 1;
	}
	uv_mutex_unlock(&lock);
}

void gt_recorder_look(struct gt_recorder *rec)
{
	(void)rec;
	fake.looks++;
	fake.interleaved |= fake.busy > 0;
}

void gt_recorder_drain(struct gt_recorder *rec, uint64_t now_ns, bool flush_due,
		       struct gt_recorder_report *report)
{
	(void)now_ns;
	uv_mutex_lock(&lock);
	fake.drains++;
	fake.flush_due = flush_due;
	uv_mutex_unlock(&lock);
	work(rec, report);
}

void gt_recorder_finish(struct gt_recorder *rec, enum gt_end end, uint64_t now_ns,
			struct gt_recorder_report *report)
{
	(void)now_ns;
	uv_mutex_lock(&lock);
	fake.finishes++;
	fake.end = end;
	uv_mutex_unlock(&lock);
	work(rec, report);
}

void gt_recorder_free(struct gt_recorder *rec)
{
	if (!rec)
		return;
	close(rec->arena_fd);
	fake.frees++;
	fake.alive--;
	free(rec);
}
