/*
 * check_print.c - the verdict on a trace as text, and as JSON (gtrace-check.1).
 */
#include "base.h"
#include "check.h"
#include "safe_text.h"
#include "summary_priv.h"

static const struct {
	const char *code;
	bool is_error;
	const char *text;
} rules[] = {
#define RULE(name, code, is_error, pytorch, text) { code, is_error, text },
	GT_CHECK_RULES(RULE)
#undef RULE
};

static uint64_t count_rules(const struct gt_check *check, bool errors)
{
	uint64_t count = 0;

	for (int i = 0; i < GT_CHECK_RULE_COUNT; i++)
		count += check->findings[i].count && rules[i].is_error == errors;
	return count;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_count(struct gt_buf *out, uint64_t count, const char *one, const char *many)
{
	gt_buf_printf(out, "%llu %s", (unsigned long long)count, count == 1 ? one : many);
}

static void put_verdict(const struct gt_check *check, struct gt_buf *out)
{
	uint64_t errors = count_rules(check, true), warnings = count_rules(check, false);

	gt_safe_put(out, gt_str_of(check->about->path));
	gt_buf_text(out, errors ? ": usable, with losses (" : ": sound");
	if (errors)
		put_count(out, errors, "error", "errors");
	if (warnings)
		gt_buf_text(out, errors ? ", " : " (");
	if (warnings)
		put_count(out, warnings, "warning", "warnings");
	gt_buf_text(out, errors || warnings ? ")\n" : "\n");
}

static void put_about(const struct gt_check *check, struct gt_buf *out)
{
	const struct gt_summary *about = check->about;
	const struct gt_check_health *health = &check->health;

	gt_safe_put(out, gt_buf_str(&about->producer));
	if (about->devices.len) {
		gt_buf_text(out, ", ");
		gt_safe_put(out, gt_buf_str(&about->devices));
	}
	if (about->rank >= 0)
		gt_buf_printf(out, ", rank %lld", (long long)about->rank);
	if (about->rank >= 0 && about->world_size > 0)
		gt_buf_printf(out, " of %lld", (long long)about->world_size);
	gt_buf_byte(out, '\n');
	if (about->copy.kind)
		gt_buf_printf(out, "%s\n", about->copy.about);
	put_count(out, check->read.events, "event", "events");
	gt_buf_text(out, " on ");
	put_count(out, health->tracks, "track", "tracks");
	gt_buf_text(out, ", ");
	put_count(out, health->steps, "step", "steps");
	gt_buf_printf(out, ", %llu.%06llu ms from the first slice to the end of the last\n",
		      (unsigned long long)(health->span_ns / GT_NSEC_PER_MSEC),
		      (unsigned long long)(health->span_ns % GT_NSEC_PER_MSEC));
}

static void put_links(const struct gt_check_health *health, struct gt_buf *out)
{
	put_count(out, health->gpu_ops, "piece of GPU work, ", "pieces of GPU work, ");
	gt_buf_printf(out, "%llu without a launch", (unsigned long long)health->gpu_without_launch);
	if (health->before_first_launch)
		gt_buf_printf(out, " (%llu launched before the trace began)",
			      (unsigned long long)health->before_first_launch);
	gt_buf_byte(out, '\n');
	put_count(out, health->launches, "launch, ", "launches, ");
	gt_buf_printf(out, "%llu without GPU work",
		      (unsigned long long)health->launches_without_gpu);
	if (health->after_last_gpu)
		gt_buf_printf(out, " (%llu after the last GPU work)",
			      (unsigned long long)health->after_last_gpu);
	gt_buf_byte(out, '\n');
	if (health->not_compared)
		gt_buf_printf(out, "%llu events are beyond what is compared with others\n",
			      (unsigned long long)health->not_compared);
}

int gt_check_print(const struct gt_check *check, struct gt_buf *out)
{
	put_verdict(check, out);
	put_about(check, out);
	if (check->is_pytorch)
		put_links(&check->health, out);
	for (int i = 0; i < GT_CHECK_RULE_COUNT; i++) {
		const struct gt_check_finding *finding = &check->findings[i];

		if (!finding->count)
			continue;
		gt_buf_printf(out, "%s %s x%llu: %s", rules[i].is_error ? "error" : "warning",
			      rules[i].code, (unsigned long long)finding->count, rules[i].text);
		if (finding->first[0])
			gt_buf_printf(out, " [first: %s]", finding->first);
		gt_buf_byte(out, '\n');
	}
	return out->failed ? -ENOMEM : 0;
}

/* ---- JSON; the texts of the rules need no escapes
 * ------------------------------------------------------------------------------------ */

static void put_member(struct gt_buf *out, const char *key, uint64_t value)
{
	gt_buf_printf(out, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void put_findings(const struct gt_check *check, struct gt_buf *out)
{
	const char *comma = "";

	gt_buf_text(out, ",\"findings\":[");
	for (int i = 0; i < GT_CHECK_RULE_COUNT; i++) {
		const struct gt_check_finding *finding = &check->findings[i];

		if (!finding->count)
			continue;
		gt_buf_printf(out,
			      "%s\n{\"rule\":\"%s\",\"severity\":\"%s\",\"count\":%llu,\"text\":",
			      comma, rules[i].code, rules[i].is_error ? "error" : "warning",
			      (unsigned long long)finding->count);
		gt_safe_put_json(out, gt_str_of(rules[i].text));
		gt_buf_text(out, ",\"first\":");
		gt_safe_put_json(out, gt_str_of(finding->first));
		gt_buf_byte(out, '}');
		comma = ",";
	}
	gt_buf_byte(out, ']');
}

int gt_check_print_about(const struct gt_check *check, const struct gt_trace_copy *copy,
			 struct gt_buf *out)
{
	const char *comma = "";

	gt_buf_printf(out, "{\"by\":\"gtrace " GT_VERSION "\",\"what\":\"repair\",\"events\":%llu",
		      (unsigned long long)gt_trace_copy_events(copy));
	put_member(out, "left_out",
		   gt_trace_copy_lost(copy) + check->read.skipped + check->read.large_members);
	gt_buf_text(out, ",\"errors\":[");
	for (int i = 0; i < GT_CHECK_RULE_COUNT; i++) {
		if (!check->findings[i].count || !rules[i].is_error)
			continue;
		gt_buf_printf(out, "%s\n\"%s x%llu: ", comma, rules[i].code,
			      (unsigned long long)check->findings[i].count);
		gt_buf_text(out, rules[i].text);
		gt_buf_byte(out, '"');
		comma = ",";
	}
	gt_buf_byte(out, ']');
	gt_trace_copy_put_origin(copy, out);
	gt_buf_byte(out, '}');
	return out->failed ? -ENOMEM : 0;
}

int gt_check_print_json(const struct gt_check *check, struct gt_buf *out)
{
	const struct gt_check_health *health = &check->health;
	const struct gt_summary *about = check->about;

	gt_buf_text(out, "{\"files\":[{\"path\":");
	gt_safe_put_json(out, gt_str_of(about->path));
	gt_buf_printf(out, ",\"sound\":%s", gt_check_is_sound(check) ? "true" : "false");
	gt_buf_text(out, ",\"producer\":");
	gt_safe_put_json(out, gt_buf_str(&about->producer));
	if (about->rank >= 0)
		put_member(out, "rank", (uint64_t)about->rank);
	else
		gt_buf_text(out, ",\"rank\":null");
	gt_summary_put_copy_json(about, out);
	gt_buf_printf(out, ",\"health\":{\"events\":%llu", (unsigned long long)check->read.events);
	put_member(out, "skipped", check->read.skipped);
	put_member(out, "repaired", check->read.repaired);
	put_member(out, "tracks", health->tracks);
	put_member(out, "steps", health->steps);
	put_member(out, "span_ns", health->span_ns);
	put_member(out, "gpu_ops", health->gpu_ops);
	put_member(out, "gpu_without_launch", health->gpu_without_launch);
	put_member(out, "before_first_launch", health->before_first_launch);
	put_member(out, "launches", health->launches);
	put_member(out, "launches_without_gpu", health->launches_without_gpu);
	put_member(out, "after_last_gpu", health->after_last_gpu);
	put_member(out, "not_compared", health->not_compared);
	put_member(out, "dropped", about->own.dropped);
	put_member(out, "bad_records", about->own.bad_records);
	gt_buf_byte(out, '}');
	put_findings(check, out);
	gt_buf_text(out, "}]}\n");
	return out->failed ? -ENOMEM : 0;
}
