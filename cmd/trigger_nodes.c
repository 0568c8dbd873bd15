#include "base.h"
#include "clock.h"
#include "cmd.h"
#include "die.h"
#include "rendezvous.h"
#include "step_marks.h"
#include "trigger_nodes.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NODES_MAX     4096
#define POLL_MS       50
#define LOOK_MS       3000 /* so long a session has to say that it is there, */
#define ANSWER_MS     5000 /* what it says to a plan, */
#define COMMIT_MS     5000 /* and that it heard of the decision */
#define ATTEMPTS      4
#define LEAD_FIRST_MS 1000 /* for files to be seen; twice as long in each attempt */
#define LEAD_STEPS    2
#define STALE_S       60 /* a session writes its file every 5 s */

struct node {
	char name[128]; /* of its file */
	char host[80];
	uint64_t pid;
	bool out; /* it does not take part */
	struct gt_fields state;
};

struct request {
	const struct trigger_nodes *wanted;
	struct node *nodes;
	size_t count;
	char id[64];
	uint64_t attempt;
	const char *phase; /* that was published last */
	uint64_t first;
	uint64_t active;
	uint64_t warmup;
	uint64_t cycle;
};

static void pause_ms(uint64_t ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)(ms * GT_NSEC_PER_MSEC) }, NULL);
}

/* ---- files ---- */

static void publish(struct request *request, const char *phase)
{
	struct gt_fields fields = { .len = 0 };
	char key[160];
	struct gt_err err;

	request->phase = phase;
	gt_fields_add(&fields, "request", "%s", request->id);
	gt_fields_add(&fields, "attempt", "%llu", (unsigned long long)request->attempt);
	gt_fields_add(&fields, "phase", "%s", phase);
	gt_fields_add(&fields, "first", "%llu", (unsigned long long)request->first);
	gt_fields_add(&fields, "active", "%llu", (unsigned long long)request->active);
	gt_fields_add(&fields, "warmup", "%llu", (unsigned long long)request->warmup);
	gt_fields_add(&fields, "cycle", "%llu", (unsigned long long)request->cycle);
	for (size_t i = 0; i < request->count; i++) {
		if (!request->nodes[i].out)
			continue;
		snprintf(key, sizeof(key), "without-%s", request->nodes[i].name);
		gt_fields_add(&fields, key, "1");
	}
	if (fields.full)
		die(STATUS_FAILURE, "trigger: too many sessions do not answer");
	if (gt_rendezvous_write(request->wanted->dir, GT_RENDEZVOUS_REQUEST, &fields, &err) < 0)
		die(STATUS_FAILURE, "trigger: %s", err.msg);
}

/* Another one has begun meanwhile, and the sessions follow that. */
static void check_own(const struct request *request)
{
	struct gt_fields fields;

	if (!gt_rendezvous_read(request->wanted->dir, GT_RENDEZVOUS_REQUEST, &fields) &&
	    !gt_fields_is(&fields, "request", request->id))
		die(STATUS_FAILURE, "trigger: another 'gtrace trigger' has come in between");
}

/* Has the session answered to what was published last? */
static bool has_answered(const struct request *request, struct node *node)
{
	uint64_t attempt = UINT64_MAX;

	if (gt_rendezvous_read(request->wanted->dir, node->name, &node->state) < 0)
		return false;
	gt_fields_number(&node->state, "attempt", &attempt);
	return gt_fields_is(&node->state, "request", request->id) && attempt == request->attempt &&
	       gt_fields_is(&node->state, "phase", request->phase) &&
	       !gt_fields_is(&node->state, "answer", "preparing");
}

/* Was its file left by a session that was killed? Where pids are the same that is certain. */
static bool is_dead(const struct request *request, const char *name)
{
	char path[PATH_MAX], request_path[PATH_MAX], space[GT_RENDEZVOUS_SPACE_MAX];
	struct stat file, newest;
	struct gt_fields fields;
	uint64_t pid = 0;

	snprintf(path, sizeof(path), "%s/%s", request->wanted->dir, name);
	snprintf(request_path, sizeof(request_path), "%s/%s", request->wanted->dir,
		 GT_RENDEZVOUS_REQUEST);
	gt_rendezvous_pid_space(space, sizeof(space));
	if (*space && !gt_rendezvous_read(request->wanted->dir, name, &fields) &&
	    gt_fields_is(&fields, "space", space) && gt_fields_number(&fields, "pid", &pid) &&
	    pid && kill((pid_t)pid, 0) < 0 && errno == ESRCH) {
		unlink(path);
		return true;
	}
	/* By the clock of the file system, which is the same for both. */
	return !stat(path, &file) && !stat(request_path, &newest) &&
	       file.st_mtime + STALE_S < newest.st_mtime;
}

static void find_nodes(struct request *request)
{
	size_t prefix = strlen(GT_RENDEZVOUS_SESSION);
	struct dirent *entry;
	DIR *dir = opendir(request->wanted->dir);

	if (!dir)
		die(STATUS_FAILURE, "trigger: cannot read '%s': %s", request->wanted->dir,
		    strerror(errno));
	request->nodes = NULL;
	request->count = 0;
	while (request->count < NODES_MAX && (entry = readdir(dir))) {
		struct node *nodes, *node;

		if (strncmp(entry->d_name, GT_RENDEZVOUS_SESSION, prefix) ||
		    strlen(entry->d_name) >= sizeof(node->name))
			continue;
		nodes = realloc(request->nodes, (request->count + 1) * sizeof(*nodes));
		if (!nodes)
			die(STATUS_FAILURE, "trigger: out of memory");
		request->nodes = nodes;
		node = &nodes[request->count];
		memset(node, 0, sizeof(*node));
		snprintf(node->name, sizeof(node->name), "%s", entry->d_name);
		if (gt_rendezvous_read(request->wanted->dir, node->name, &node->state) < 0 ||
		    !gt_fields_get(&node->state, "host", node->host, sizeof(node->host)) ||
		    !gt_fields_number(&node->state, "pid", &node->pid) ||
		    is_dead(request, node->name))
			continue;
		request->count++;
	}
	closedir(dir);
}

/* ---- the agreement ---- */

/* Wait until every session has answered; those that have not are left out. Returns how many have.
 */
static size_t await(struct request *request, uint64_t within_ms)
{
	uint64_t end_ms = gt_clock_ms(CLOCK_MONOTONIC) + within_ms;
	size_t waiting, taking_part;

	for (;;) {
		waiting = taking_part = 0;
		for (size_t i = 0; i < request->count; i++) {
			if (request->nodes[i].out)
				continue;
			taking_part++;
			waiting += !has_answered(request, &request->nodes[i]);
		}
		if (!waiting || gt_clock_ms(CLOCK_MONOTONIC) >= end_ms)
			break;
		check_own(request);
		pause_ms(POLL_MS);
	}
	for (size_t i = 0; i < request->count && waiting; i++) {
		struct node *node = &request->nodes[i];

		if (node->out || has_answered(request, node))
			continue;
		warn("the session on %s (pid %llu) does not answer: it is left out", node->host,
		     (unsigned long long)node->pid);
		node->out = true;
		taking_part--;
	}
	return taking_part;
}

/* The largest of the sessions' values, or fallback. */
static uint64_t largest(const struct request *request, const char *key, uint64_t fallback)
{
	uint64_t most = fallback, value;
	bool any = false;

	for (size_t i = 0; i < request->count; i++) {
		if (request->nodes[i].out ||
		    !gt_fields_number(&request->nodes[i].state, key, &value))
			continue;
		most = any ? GT_MAX(most, value) : value;
		any = true;
	}
	return most;
}

static uint64_t count_ranks(const struct request *request, const char *key)
{
	uint64_t ranks = 0, value;

	for (size_t i = 0; i < request->count; i++)
		if (!request->nodes[i].out &&
		    gt_fields_number(&request->nodes[i].state, key, &value))
			ranks += value;
	return ranks;
}

static void plan(struct request *request)
{
	const struct trigger_nodes *wanted = request->wanted;
	uint64_t step = largest(request, "step", 0), rate = largest(request, "rate", 0);
	uint64_t lead_ms = (uint64_t)LEAD_FIRST_MS << request->attempt;

	request->active = wanted->active == UINT64_MAX ? largest(request, "active", 3)
						       : wanted->active;
	request->warmup = wanted->warmup == UINT64_MAX ? largest(request, "warmup", 1)
						       : wanted->warmup;
	request->cycle = largest(request, "cycle", 0);
	request->first = wanted->step;
	if (wanted->at == GT_AT_AFTER)
		request->first += step;
	else if (wanted->at == GT_AT_SOON)
		request->first =
			step + LEAD_STEPS + rate * lead_ms / 1000000 + GT_MAX(request->warmup, 1);
	if (request->first > GT_SCHEDULE_MAX) {
		publish(request, "cancel");
		die(STATUS_FAILURE, "trigger: no step is so far away");
	}
}

/* The session that cannot, or would have been too late; NULL: there is none. */
static const struct node *find_answer(const struct request *request, const char *answer)
{
	for (size_t i = 0; i < request->count; i++)
		if (!request->nodes[i].out &&
		    gt_fields_is(&request->nodes[i].state, "answer", answer))
			return &request->nodes[i];
	return NULL;
}

static void __attribute__((noreturn)) give_up(struct request *request, const struct node *node)
{
	char why[512] = "it does not say why";

	publish(request, "cancel");
	gt_fields_get(&node->state, "why", why, sizeof(why));
	die(STATUS_FAILURE, "trigger: the session on %s (pid %llu): %s", node->host,
	    (unsigned long long)node->pid, why);
}

/* true: all have taken it. */
static bool propose(struct request *request)
{
	const struct node *node;

	plan(request);
	request->attempt++;
	publish(request, "prepare");
	if (!await(request, ANSWER_MS)) {
		publish(request, "cancel");
		die(STATUS_FAILURE, "trigger: no session answers");
	}
	node = find_answer(request, "failed");
	if (node)
		give_up(request, node);
	node = find_answer(request, "late");
	if (node && (request->wanted->at != GT_AT_SOON || request->attempt == ATTEMPTS))
		give_up(request, node);
	return !node;
}

static void begin(struct request *request)
{
	char host[HOST_NAME_MAX + 1] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(request->id, sizeof(request->id), "%.24s-%d-%llx", host, (int)getpid(),
		 (unsigned long long)gt_clock_ns(CLOCK_REALTIME));
	publish(request, "look");
	find_nodes(request);
	if (!request->count)
		die(STATUS_FAILURE,
		    "trigger: there is no session of 'gtrace run --rendezvous' in '%s'",
		    request->wanted->dir);
	if (!await(request, LOOK_MS))
		die(STATUS_FAILURE, "trigger: no session answers");
	if (request->wanted->at != GT_AT_STEP && !count_ranks(request, "ranks"))
		die(STATUS_FAILURE, "trigger: no step was seen so far: try again when 'gtrace ps' "
				    "shows ranks, or name a step with --at-step");
}

int trigger_nodes(const struct trigger_nodes *wanted)
{
	struct request request = { .wanted = wanted };
	const struct node *node;
	uint64_t ranks, lacking;
	size_t sessions;

	begin(&request);
	while (!propose(&request))
		;
	publish(&request, "commit");
	sessions = await(&request, COMMIT_MS);
	node = find_answer(&request, "failed");
	if (node)
		warn("the session on %s (pid %llu) has no part in it after all", node->host,
		     (unsigned long long)node->pid);
	ranks = count_ranks(&request, "part");
	lacking = GT_MAX(count_ranks(&request, "ranks"), ranks) - ranks;
	if (lacking)
		warn("%llu rank%s no part in it: 'gtrace run' says there which and why",
		     (unsigned long long)lacking, lacking == 1 ? " has" : "s have");
	say("%s of %llu rank%s in %zu session%s will be traced",
	    gt_steps_text(request.first, request.first + request.active - 1).text,
	    (unsigned long long)ranks, ranks == 1 ? "" : "s", sessions, sessions == 1 ? "" : "s");
	free(request.nodes);
	return 0;
}
