#include "base.h"
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>

int gt_schedule_check(const struct gt_schedule *sched)
{
	if (sched->active < 1 || sched->active > GT_SCHEDULE_MAX ||
	    sched->skip_first > GT_SCHEDULE_MAX || sched->wait > GT_SCHEDULE_MAX ||
	    sched->warmup > GT_SCHEDULE_MAX || sched->repeat > GT_SCHEDULE_MAX)
		return -EINVAL;
	return 0;
}

void gt_schedule_at(const struct gt_schedule *sched, uint64_t step, struct gt_sched_pos *ret)
{
	uint64_t idle = sched->wait + sched->warmup; /* steps of a cycle before its first active */
	uint64_t len = idle + sched->active;
	uint64_t pos;

	*ret = (struct gt_sched_pos){ .phase = GT_PHASE_IDLE };
	if (step < sched->skip_first) {
		ret->steps_to_active = sched->skip_first - step + idle;
		if (sched->skip_first_wait)
			ret->steps_to_active -= sched->wait;
		return;
	}
	step -= sched->skip_first;
	if (sched->skip_first_wait)
		step += sched->wait;
	ret->cycle = step / len;
	if (sched->repeat && ret->cycle >= sched->repeat) {
		ret->phase = GT_PHASE_OVER;
		return;
	}
	pos = step % len;
	if (pos < sched->wait) {
		ret->index = pos;
		ret->steps_to_active = idle - pos;
	} else if (pos < idle) {
		ret->phase = GT_PHASE_WARMUP;
		ret->index = pos - sched->wait;
		ret->steps_to_active = idle - pos;
	} else {
		ret->phase = GT_PHASE_ACTIVE;
		ret->index = pos - idle;
		ret->last = pos + 1 == len;
	}
}

int gt_schedule_format(const struct gt_schedule *sched, char *buf, size_t len)
{
	int n = snprintf(buf, len,
			 "skip_first=%llu,wait=%llu,warmup=%llu,active=%llu,repeat=%llu,"
			 "skip_first_wait=%d,capture=%d",
			 (unsigned long long)sched->skip_first, (unsigned long long)sched->wait,
			 (unsigned long long)sched->warmup, (unsigned long long)sched->active,
			 (unsigned long long)sched->repeat, sched->skip_first_wait, sched->capture);

	return n < 0 || (size_t)n >= len ? -ENOSPC : 0;
}

/* One "key=digits" at *text, which moves behind it and its comma. */
static int parse_field(const char **text, struct gt_schedule *sched)
{
	static const struct {
		const char *key;
		size_t offset;
	} fields[] = {
		{ "skip_first=", offsetof(struct gt_schedule, skip_first) },
		{ "wait=", offsetof(struct gt_schedule, wait) },
		{ "warmup=", offsetof(struct gt_schedule, warmup) },
		{ "active=", offsetof(struct gt_schedule, active) },
		{ "repeat=", offsetof(struct gt_schedule, repeat) },
		{ "skip_first_wait=", offsetof(struct gt_schedule, skip_first_wait) },
		{ "capture=", offsetof(struct gt_schedule, capture) },
	};
	const char *pos = *text;
	uint64_t value = 0;
	size_t i, digits = 0;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strncmp(pos, fields[i].key, strlen(fields[i].key)))
			break;
	if (i == ARRAY_SIZE(fields))
		return -EINVAL;
	pos += strlen(fields[i].key);
	for (; *pos >= '0' && *pos <= '9' && digits < 10; pos++, digits++)
		value = value * 10 + (uint64_t)(*pos - '0');
	if (!digits || (*pos && *pos != ','))
		return -EINVAL;
	if (fields[i].offset >= offsetof(struct gt_schedule, skip_first_wait))
		*((bool *)sched + fields[i].offset) = value != 0;
	else
		memcpy((char *)sched + fields[i].offset, &value, sizeof(value));
	*text = *pos ? pos + 1 : pos;
	return 0;
}

int gt_schedule_parse(const char *text, struct gt_schedule *ret)
{
	struct gt_schedule sched = GT_SCHEDULE_DEFAULT;

	while (*text)
		if (parse_field(&text, &sched) < 0)
			return -EINVAL;
	if (gt_schedule_check(&sched) < 0)
		return -EINVAL;
	*ret = sched;
	return 0;
}
