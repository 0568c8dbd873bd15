#include "base.h"
#include "cmd.h"
#include "die.h"
#include "sessions.h"

#include <stdlib.h>
#include <unistd.h>

#define ANSWER_WITHIN_MS 1000

uint64_t session_pid(const struct session_found *session)
{
	uint64_t pid = 0;

	/* The name of the socket has it, too, for one that does not answer. */
	if (!gt_fields_number(&session->status, "pid", &pid))
		pid = strtoull(strrchr(session->path, '/') + 1, NULL, 10);
	return pid;
}

static int by_pid(const void *left, const void *right)
{
	uint64_t a = session_pid(left), b = session_pid(right);

	return a < b ? -1 : a > b;
}

static int on_found(void *ctx, const char *path)
{
	struct gt_fields question = { .len = 0 };
	struct sessions *sessions = ctx;
	struct session_found *found = &sessions->list[sessions->count];
	struct gt_err err;
	int rc;

	gt_fields_add(&question, "do", "status");
	rc = gt_control_ask(path, &question, ANSWER_WITHIN_MS, &found->status, &err);
	if (rc == -ECONNREFUSED) { /* killed before it could remove it */
		unlink(path);
		return 0;
	}
	if (rc == -ENOENT || rc == -EPIPE) /* it has just ended */
		return 0;
	found->mute = rc < 0;
	if (found->mute)
		found->status.len = 0;
	snprintf(found->path, sizeof(found->path), "%s", path);
	return ++sessions->count == SESSIONS_MAX;
}

void sessions_find(struct sessions *ret)
{
	ret->count = 0;
	ret->list = calloc(SESSIONS_MAX, sizeof(*ret->list));
	if (!ret->list)
		die(STATUS_FAILURE, "out of memory");
	gt_control_each(getenv, on_found, ret);
	qsort(ret->list, ret->count, sizeof(*ret->list), by_pid);
}

void sessions_free(struct sessions *sessions)
{
	free(sessions->list);
}

static bool is_meant(const struct session_found *session, const char *wanted)
{
	const char *at = NULL;
	char value[24];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)session_pid(session));
	if (!strcmp(wanted, value) || gt_fields_is(&session->status, "session", wanted))
		return true;
	while (gt_fields_each(&session->status, "process", &at, value, sizeof(value)))
		if (!strcmp(wanted, value))
			return true;
	return false;
}

static void list(const struct sessions *sessions, const char *wanted)
{
	char name[256], command[256];

	for (size_t i = 0; i < sessions->count; i++) {
		const struct session_found *session = &sessions->list[i];

		if (wanted && !is_meant(session, wanted))
			continue;
		if (!gt_fields_get(&session->status, "session", name, sizeof(name)) ||
		    !gt_fields_get(&session->status, "command", command, sizeof(command)))
			say("  %llu (does not answer)", (unsigned long long)session_pid(session));
		else
			say("  %llu %s: %s", (unsigned long long)session_pid(session), name,
			    command);
	}
}

const struct session_found *sessions_choose(const struct sessions *sessions, const char *command,
					    const char *wanted)
{
	const struct session_found *found = NULL;
	size_t count = 0;

	for (size_t i = 0; i < sessions->count; i++) {
		if (wanted && !is_meant(&sessions->list[i], wanted))
			continue;
		found = &sessions->list[i];
		count++;
	}
	if (count == 1)
		return found;
	if (!sessions->count)
		die(STATUS_FAILURE, "%s: there is no session of 'gtrace run' of yours here",
		    command);
	if (count) {
		say("%s: which session? --session takes one of:", command);
		list(sessions, wanted);
	} else {
		say("%s: no session is called '%s'; there are:", command, wanted);
		list(sessions, NULL);
	}
	exit(STATUS_FAILURE);
}
