#include "base.h"
#include "cmd.h"
#include "die.h"
#include "options.h"
#include "safe_text.h"
#include "sessions.h"
#include "text_table.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 100

static bool json;

static const struct opt opts[] = {
	OPT_FLAG(0, "json", &json, "print it as JSON"),
};

static const struct opt_command self = {
	.name = "ps",
	.synopsis = "[options]",
	.about = "List your sessions of 'gtrace run' on this machine. The exit status is 0, also\n"
		 "when there are none",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
};

static void put_cell(struct gt_text_table *table, const struct session_found *session,
		     const char *key)
{
	char value[1024];

	if (!gt_fields_get(&session->status, key, value, sizeof(value)))
		snprintf(value, sizeof(value), "%s",
			 !session->mute         ? "-"
			 : strcmp(key, "phase") ? "?"
						: "does not answer");
	gt_text_cell_name(table, gt_str_of(value));
}

static void put_table(const struct sessions *sessions, struct gt_buf *text)
{
	static const char *const titles[] = {
		"pid", "session", "ranks", "step", "phase", "command"
	};
	struct gt_text_table table = { .titles = titles, .columns = ARRAY_SIZE(titles) };
	size_t width = WIDTH_DEFAULT;
	struct winsize size;

	for (size_t i = 0; i < sessions->count; i++) {
		gt_text_cell(&table, "%llu", (unsigned long long)session_pid(&sessions->list[i]));
		for (size_t k = 1; k < ARRAY_SIZE(titles); k++)
			put_cell(&table, &sessions->list[i], titles[k]);
	}
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		width = size.ws_col;
	gt_text_table_print(&table, width, text);
}

static void put_text(struct gt_buf *text, const struct session_found *session, const char *key)
{
	char value[1024];

	gt_buf_printf(text, ", \"%s\": ", key);
	if (gt_fields_get(&session->status, key, value, sizeof(value)))
		gt_safe_put_json(text, gt_str_of(value));
	else
		gt_buf_text(text, "null");
}

static void put_number(struct gt_buf *text, const struct session_found *session, const char *key)
{
	uint64_t value;

	if (gt_fields_number(&session->status, key, &value))
		gt_buf_printf(text, ", \"%s\": %llu", key, (unsigned long long)value);
	else
		gt_buf_printf(text, ", \"%s\": null", key);
}

static void put_session(struct gt_buf *text, const struct session_found *session)
{
	const char *at = NULL;
	char value[24];
	bool any = false;

	gt_buf_printf(text, "  {\"pid\": %llu", (unsigned long long)session_pid(session));
	put_text(text, session, "session");
	put_text(text, session, "host");
	put_text(text, session, "command");
	put_text(text, session, "directory");
	put_number(text, session, "ranks");
	put_number(text, session, "step");
	put_text(text, session, "source");
	put_text(text, session, "phase");
	gt_buf_printf(text, ", \"answers\": %s, \"processes\": [",
		      session->mute ? "false" : "true");
	while (gt_fields_each(&session->status, "process", &at, value, sizeof(value))) {
		if (!*value || strspn(value, "0123456789") != strlen(value))
			continue;
		gt_buf_printf(text, "%s%s", any ? ", " : "", value);
		any = true;
	}
	gt_buf_text(text, "]}");
}

static void put_json(const struct sessions *sessions, struct gt_buf *text)
{
	gt_buf_text(text, "[");
	for (size_t i = 0; i < sessions->count; i++) {
		gt_buf_text(text, i ? ",\n" : "\n");
		put_session(text, &sessions->list[i]);
	}
	gt_buf_text(text, sessions->count ? "\n]\n" : "]\n");
}

int cmd_ps(int argc, char **argv)
{
	struct sessions sessions;
	struct gt_buf text = { 0 };

	opt_parse_all(&self, argc, argv);
	sessions_find(&sessions);
	if (json)
		put_json(&sessions, &text);
	else if (sessions.count)
		put_table(&sessions, &text);
	if (text.failed)
		die(STATUS_FAILURE, "out of memory");
	if (text.len)
		put_stdout(gt_buf_str(&text));
	gt_buf_release(&text);
	sessions_free(&sessions);
	return 0;
}
