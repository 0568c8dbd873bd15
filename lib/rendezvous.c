#include "base.h"
#include "clock.h"
#include "rendezvous.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RATE_OVER_MS  500
#define TELL_EVERY_MS 5000 /* so that whoever looks knows that the session lives */

/* ---- files ---- */

static int write_whole(int fd, const struct gt_fields *fields)
{
	size_t done = 0;
	ssize_t n;

	while (done < fields->len) {
		n = write(fd, fields->text + done, fields->len - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int gt_rendezvous_write(const char *dir, const char *name, const struct gt_fields *fields,
			struct gt_err *err)
{
	char path[PATH_MAX], temporary[PATH_MAX + 64];
	int fd, rc;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return gt_err_sys(err, -ENAMETOOLONG, "cannot write to '%s'", dir);
	snprintf(temporary, sizeof(temporary), "%s/.%s.XXXXXX", dir, name);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return gt_err_sys(err, -errno, "cannot write to '%s'", dir);
	rc = write_whole(fd, fields);
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && rename(temporary, path) < 0)
		rc = -errno;
	if (!rc)
		return 0;
	unlink(temporary);
	return gt_err_sys(err, rc, "cannot write '%s'", path);
}

int gt_rendezvous_try(const char *dir, struct gt_err *err)
{
	struct gt_fields fields = { .len = 0 };
	char path[PATH_MAX], name[64];
	int rc;

	snprintf(name, sizeof(name), ".gtrace-try-%d", (int)getpid());
	gt_fields_add(&fields, "try", "1"); /* room is needed, too */
	rc = gt_rendezvous_write(dir, name, &fields, err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	return 0;
}

int gt_rendezvous_read(const char *dir, const char *name, struct gt_fields *ret)
{
	char path[PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	ret->len = 0;
	ret->full = false;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return -ENAMETOOLONG;
	/* Not to wait for whoever put a FIFO there. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		close(fd);
		return -EBADMSG;
	}
	n = read(fd, ret->text, sizeof(ret->text));
	close(fd);
	if (n < 0)
		return -errno;
	ret->len = (size_t)n;
	return gt_fields_check(ret);
}

void gt_rendezvous_pid_space(char *buf, size_t len)
{
	char boot[40] = "", namespace[40] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot, sizeof(boot) - 1);

	if (fd >= 0)
		close(fd);
	boot[strcspn(boot, "\n")] = '\0';
	*buf = '\0';
	if (n > 0 && readlink("/proc/self/ns/pid", namespace, sizeof(namespace) - 1) > 0)
		snprintf(buf, len, "%s %s", boot, namespace);
}

/* ---- a session ---- */

/* Not by two looks in a row, between which there is a step or none. */
static void follow_rate(struct gt_rendezvous *rendezvous, uint64_t step, uint64_t now_ms)
{
	if (rendezvous->rate_ms && now_ms - rendezvous->rate_ms < RATE_OVER_MS)
		return;
	if (rendezvous->rate_ms && step >= rendezvous->rate_step)
		rendezvous->rate =
			(step - rendezvous->rate_step) * 1000000 / (now_ms - rendezvous->rate_ms);
	rendezvous->rate_step = step;
	rendezvous->rate_ms = now_ms;
}

static int tell(struct gt_rendezvous *rendezvous, struct gt_err *err)
{
	struct gt_rendezvous_state state = { .step = 0 };
	struct gt_fields fields = { .len = 0 };
	uint64_t now_ms = uv_now(rendezvous->timer.loop);
	int rc;

	rendezvous->state(rendezvous->ctx, &state);
	follow_rate(rendezvous, state.step, now_ms);
	gt_fields_add(&fields, "host", "%s", rendezvous->host);
	gt_fields_add(&fields, "pid", "%d", (int)getpid());
	gt_fields_add(&fields, "space", "%s", rendezvous->space);
	gt_fields_add(&fields, "command", "%s", rendezvous->command);
	gt_fields_add(&fields, "ranks", "%u", state.ranks);
	gt_fields_add(&fields, "step", "%llu", (unsigned long long)state.step);
	gt_fields_add(&fields, "rate", "%llu",
		      (unsigned long long)rendezvous->rate); /* in 1000 s */
	gt_fields_add(&fields, "cycle", "%llu", (unsigned long long)state.next_cycle);
	gt_fields_add(&fields, "active", "%llu", (unsigned long long)state.active);
	gt_fields_add(&fields, "warmup", "%llu", (unsigned long long)state.warmup);
	if (*rendezvous->id) {
		gt_fields_add(&fields, "request", "%s", rendezvous->id);
		gt_fields_add(&fields, "attempt", "%llu", (unsigned long long)rendezvous->attempt);
		gt_fields_add(&fields, "part", "%u", rendezvous->part);
		gt_fields_add(&fields, "phase", "%s", rendezvous->phase);
		gt_fields_add(&fields, "answer", "%s", rendezvous->answer);
		gt_fields_add(&fields, "why", "%s", rendezvous->why.msg);
	}
	rc = gt_rendezvous_write(rendezvous->dir, rendezvous->name, &fields, err);
	rendezvous->changed = rc < 0;
	rendezvous->told_ms = now_ms;
	return rc;
}

static void say(struct gt_rendezvous *rendezvous, const char *answer)
{
	snprintf(rendezvous->answer, sizeof(rendezvous->answer), "%s", answer);
	rendezvous->changed = true;
}

static void drop(struct gt_rendezvous *rendezvous)
{
	if (rendezvous->preparing)
		rendezvous->decide(rendezvous->ctx, false);
	rendezvous->preparing = false;
}

static void prepare(struct gt_rendezvous *rendezvous, const struct gt_fields *request)
{
	struct gt_trigger_request wanted = { .at = GT_AT_STEP, .prepare = true };

	drop(rendezvous);
	if (!gt_fields_number(request, "active", &wanted.active) ||
	    !gt_fields_number(request, "warmup", &wanted.warmup) ||
	    !gt_fields_number(request, "cycle", &wanted.cycle) ||
	    !gt_fields_number(request, "first", &wanted.step) || wanted.cycle > GT_SCHEDULE_MAX) {
		gt_err_set(&rendezvous->why, -EBADMSG, "the request is none");
		say(rendezvous, "failed");
	} else if (rendezvous->prepare(rendezvous->ctx, &wanted, &rendezvous->why) < 0) {
		say(rendezvous, "failed");
	} else {
		rendezvous->preparing = true;
		say(rendezvous, "preparing");
	}
}

void gt_rendezvous_answer(struct gt_rendezvous *rendezvous, const struct gt_trigger_result *result)
{
	if (result->rc < 0) {
		rendezvous->preparing = false;
		rendezvous->why = result->err;
	}
	rendezvous->part = result->ranks;
	say(rendezvous, !result->rc ? "taken" : result->late ? "late" : "failed");
	if (rendezvous->running)
		tell(rendezvous, NULL);
}

/* Is this session among those that did not answer in time? */
static bool is_left_out(const struct gt_rendezvous *rendezvous, const struct gt_fields *request)
{
	char key[sizeof(rendezvous->name) + 16];

	snprintf(key, sizeof(key), "without-%s", rendezvous->name);
	return gt_fields_is(request, key, "1");
}

static void commit(struct gt_rendezvous *rendezvous, const struct gt_fields *request)
{
	bool taken = rendezvous->preparing && !strcmp(rendezvous->answer, "taken") &&
		     !is_left_out(rendezvous, request);

	if (!taken) {
		drop(rendezvous);
		return;
	}
	rendezvous->preparing = false;
	if (rendezvous->decide(rendezvous->ctx, true)) {
		say(rendezvous, "committed");
		return;
	}
	gt_err_set(&rendezvous->why, -ETIMEDOUT, "the decision came too late");
	say(rendezvous, "failed");
}

static void follow(struct gt_rendezvous *rendezvous, const struct gt_fields *request)
{
	char id[sizeof(rendezvous->id)] = "", phase[sizeof(rendezvous->phase)] = "";
	uint64_t attempt = 0;

	if (!gt_fields_get(request, "request", id, sizeof(id)) ||
	    !gt_fields_get(request, "phase", phase, sizeof(phase)) ||
	    !gt_fields_number(request, "attempt", &attempt))
		return;
	if (!strcmp(id, rendezvous->id) && attempt == rendezvous->attempt &&
	    !strcmp(phase, rendezvous->phase))
		return;
	/* The decision on what another attempt has prepared is to take it back. */
	if (strcmp(id, rendezvous->id) || attempt != rendezvous->attempt)
		drop(rendezvous);
	memcpy(rendezvous->id, id, sizeof(id));
	memcpy(rendezvous->phase, phase, sizeof(phase));
	rendezvous->attempt = attempt;
	if (!strcmp(phase, "look"))
		say(rendezvous, "here");
	else if (!strcmp(phase, "prepare"))
		prepare(rendezvous, request);
	else if (!strcmp(phase, "commit"))
		commit(rendezvous, request);
	else
		drop(rendezvous);
}

static void on_timer(uv_timer_t *timer)
{
	struct gt_rendezvous *rendezvous = container_of(timer, struct gt_rendezvous, timer);
	struct gt_fields request;

	if (!gt_rendezvous_read(rendezvous->dir, GT_RENDEZVOUS_REQUEST, &request))
		follow(rendezvous, &request);
	/* When that fails it is tried again, and whoever asks waits in vain. */
	if (rendezvous->changed || uv_now(timer->loop) - rendezvous->told_ms >= TELL_EVERY_MS)
		tell(rendezvous, NULL);
}

int gt_rendezvous_start(struct gt_rendezvous *rendezvous, uv_loop_t *loop, struct gt_err *err)
{
	struct gt_fields request;
	char *c;
	int rc;

	rendezvous->running = false;
	uv_timer_init(loop, &rendezvous->timer);
	snprintf(rendezvous->name, sizeof(rendezvous->name), GT_RENDEZVOUS_SESSION "%.64s-%d-%llx",
		 rendezvous->host, (int)getpid(), (unsigned long long)gt_clock_ns(CLOCK_REALTIME));
	for (c = rendezvous->name; *c; c++)
		if (*c == '/' || *c <= ' ' || *c == 0x7f)
			*c = '_';
	gt_rendezvous_pid_space(rendezvous->space, sizeof(rendezvous->space));
	*rendezvous->id = *rendezvous->phase = *rendezvous->answer = '\0';
	rendezvous->attempt = rendezvous->told_ms = 0;
	rendezvous->rate = rendezvous->rate_ms = rendezvous->rate_step = 0;
	rendezvous->preparing = false;
	rendezvous->part = 0;
	rendezvous->why.msg[0] = '\0';
	/* One that was made before is for others. */
	if (!gt_rendezvous_read(rendezvous->dir, GT_RENDEZVOUS_REQUEST, &request)) {
		gt_fields_get(&request, "request", rendezvous->id, sizeof(rendezvous->id));
		gt_fields_get(&request, "phase", rendezvous->phase, sizeof(rendezvous->phase));
		gt_fields_number(&request, "attempt", &rendezvous->attempt);
	}
	rc = tell(rendezvous, err);
	if (rc < 0)
		return rc;
	rendezvous->running = true;
	uv_timer_start(&rendezvous->timer, on_timer, GT_RENDEZVOUS_POLL_MS, GT_RENDEZVOUS_POLL_MS);
	return 0;
}

void gt_rendezvous_leave(struct gt_rendezvous *rendezvous)
{
	char path[PATH_MAX];

	if (rendezvous->running && (size_t)snprintf(path, sizeof(path), "%s/%s", rendezvous->dir,
						    rendezvous->name) < sizeof(path))
		unlink(path);
	rendezvous->running = false;
	uv_timer_stop(&rendezvous->timer);
}

void gt_rendezvous_close(struct gt_rendezvous *rendezvous)
{
	gt_rendezvous_leave(rendezvous);
	uv_close((uv_handle_t *)&rendezvous->timer, NULL);
}
