#include "base.h"
#include "doctor.h"
#include "safe_text.h"

#include <stdarg.h>
#include <stdlib.h>

static void put(struct gt_buf *out, const char *fmt, va_list args)
{
	char text[1024];
	int len = vsnprintf(text, sizeof(text), fmt, args);

	if (len > 0)
		gt_buf_append(out, text, GT_MIN((size_t)len, sizeof(text) - 1));
}

void gt_doctor_add(struct gt_doctor *doctor, const char *name, enum gt_doctor_level level,
		   const char *fmt, ...)
{
	struct gt_finding *findings, *finding;
	va_list args;

	findings = realloc(doctor->findings, (doctor->count + 1) * sizeof(*findings));
	if (!findings) {
		doctor->failed = true;
		return;
	}
	doctor->findings = findings;
	finding = &findings[doctor->count++];
	*finding = (struct gt_finding){ .name = name, .level = level };
	va_start(args, fmt);
	put(&finding->text, fmt, args);
	va_end(args);
}

void gt_doctor_fix(struct gt_doctor *doctor, const char *fmt, ...)
{
	va_list args;

	if (!doctor->count)
		return;
	va_start(args, fmt);
	put(&doctor->findings[doctor->count - 1].fix, fmt, args);
	va_end(args);
}

bool gt_doctor_child(struct gt_doctor *doctor, const char *name, struct gt_child *ret,
		     int (*body)(void *ctx), void *ctx)
{
	struct gt_err err;

	if (!gt_child_run(ret, body, ctx, doctor->signals, doctor->timeout_ms, &doctor->signal,
			  &err))
		return true;
	gt_child_release(ret);
	if (!doctor->signal)
		gt_doctor_add(doctor, name, GT_DOCTOR_PROBLEM, "%s", err.msg);
	return false;
}

bool gt_doctor_line(const struct gt_child *child, size_t *at, struct gt_str *ret)
{
	struct gt_str rest = { child->output.data + *at, child->output.len - *at };
	const char *end;

	if (!rest.len)
		return false;
	end = memchr(rest.ptr, '\n', rest.len);
	*ret = (struct gt_str){ rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len };
	*at += ret->len + (end != NULL);
	return true;
}

bool gt_doctor_value(const struct gt_child *child, const char *key, char *ret, size_t len)
{
	size_t key_len = strlen(key), at = 0;
	struct gt_str line;

	while (gt_doctor_line(child, &at, &line)) {
		if (line.len <= key_len || memcmp(line.ptr, key, key_len) ||
		    line.ptr[key_len] != ' ')
			continue;
		snprintf(ret, len, "%.*s", (int)(line.len - key_len - 1), line.ptr + key_len + 1);
		return true;
	}
	return false;
}

bool gt_doctor_is_well(const struct gt_doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++)
		if (doctor->findings[i].level == GT_DOCTOR_PROBLEM)
			return false;
	return true;
}

void gt_doctor_release(struct gt_doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		gt_buf_release(&doctor->findings[i].text);
		gt_buf_release(&doctor->findings[i].fix);
	}
	free(doctor->findings);
	doctor->findings = NULL;
	doctor->count = 0;
}

/* ---- print ----------------------------------------------------------------------------------- */

static const struct {
	const char *word;
	const char *colour;
} levels[] = {
	[GT_DOCTOR_OK] = { "ok", "\033[32m" },
	[GT_DOCTOR_WARNING] = { "warning", "\033[1;33m" },
	[GT_DOCTOR_PROBLEM] = { "problem", "\033[1;31m" },
};

static size_t count_level(const struct gt_doctor *doctor, enum gt_doctor_level level)
{
	size_t count = 0;

	for (size_t i = 0; i < doctor->count; i++)
		count += doctor->findings[i].level == level;
	return count;
}

static void put_count(struct gt_buf *out, size_t count, const char *what)
{
	gt_buf_printf(out, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

static void put_verdict(const struct gt_doctor *doctor, struct gt_buf *out)
{
	size_t problems = count_level(doctor, GT_DOCTOR_PROBLEM);
	size_t warnings = count_level(doctor, GT_DOCTOR_WARNING);

	gt_buf_text(out, problems                            ? "tracing will not work ("
			 : doctor->gpu == GT_DOCTOR_GPU_NONE ? "tracing will work, without a GPU"
							     : "tracing will work");
	if (problems)
		put_count(out, problems, "problem");
	if (warnings) {
		gt_buf_text(out, problems ? ", " : " (");
		put_count(out, warnings, "warning");
	}
	gt_buf_text(out, problems || warnings ? ")\n" : "\n");
}

int gt_doctor_print(const struct gt_doctor *doctor, bool colours, struct gt_buf *out)
{
	put_verdict(doctor, out);
	for (size_t i = 0; i < doctor->count; i++) {
		const struct gt_finding *finding = &doctor->findings[i];

		gt_buf_printf(out, "%s%s%s %s: ", colours ? levels[finding->level].colour : "",
			      levels[finding->level].word, colours ? "\033[0m" : "", finding->name);
		gt_safe_put(out, gt_buf_str(&finding->text));
		gt_buf_byte(out, '\n');
		if (!finding->fix.len)
			continue;
		gt_buf_text(out, "  fix: ");
		gt_safe_put(out, gt_buf_str(&finding->fix));
		gt_buf_byte(out, '\n');
	}
	return out->failed || doctor->failed ? -ENOMEM : 0;
}

int gt_doctor_print_json(const struct gt_doctor *doctor, struct gt_buf *out)
{
	static const char *const gpus[] = { "none", "broken", "works" };

	gt_buf_printf(out,
		      "{\"gtrace\":\"" GT_VERSION "\",\"works\":%s,\"gpu\":\"%s\",\"findings\":[",
		      gt_doctor_is_well(doctor) ? "true" : "false", gpus[doctor->gpu]);
	for (size_t i = 0; i < doctor->count; i++) {
		const struct gt_finding *finding = &doctor->findings[i];

		gt_buf_printf(out, "%s\n{\"name\":\"%s\",\"level\":\"%s\",\"text\":", i ? "," : "",
			      finding->name, levels[finding->level].word);
		gt_safe_put_json(out, gt_buf_str(&finding->text));
		gt_buf_text(out, ",\"fix\":");
		if (finding->fix.len)
			gt_safe_put_json(out, gt_buf_str(&finding->fix));
		else
			gt_buf_text(out, "null");
		gt_buf_byte(out, '}');
	}
	gt_buf_text(out, "]}\n");
	return out->failed || doctor->failed ? -ENOMEM : 0;
}
