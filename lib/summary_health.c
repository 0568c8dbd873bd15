/*
 * summary_health.c - what was lost of a trace, by us or by its producer.
 */
#include "base.h"
#include "summary.h"
#include "safe_text.h"

bool gt_summary_is_lossy(const struct gt_summary *summary)
{
	const struct gt_trace_stats *read = &summary->read;
	const struct gt_gz_status *gz = &summary->gz;

	return gz->cut || gz->damages || gz->bad_checksum || read->cut || read->skipped ||
	       read->second_document || summary->without_dur;
}

/* "1 event is …", "2 events are …": verb is of the singular, s_verb of the plural. */
static void put_count(struct gt_buf *out, uint64_t count, const char *one, const char *many)
{
	if (count)
		gt_buf_printf(out, "%llu %s\n", (unsigned long long)count, count == 1 ? one : many);
}

static void put_if(struct gt_buf *out, bool condition, const char *line)
{
	if (condition)
		gt_buf_text(out, line);
}

static void put_own(const struct gt_summary_own *own, bool is_part, struct gt_buf *out)
{
	struct gt_str warnings = gt_buf_str(&own->warnings);

	if (!own->complete) {
		gt_buf_printf(out, "the %strace is not complete", is_part ? "whole " : "");
		gt_buf_text(out, own->reason.len ? ": " : "");
		gt_safe_put(out, gt_buf_str(&own->reason));
		gt_buf_byte(out, '\n');
	}
	put_count(out, own->dropped, "record was dropped while tracing",
		  "records were dropped while tracing");
	put_count(out, own->bad_records, "GPU record was unusable", "GPU records were unusable");
	put_count(out, own->launches_without_gpu, "launch has no GPU work in the trace",
		  "launches have no GPU work in the trace");
	put_count(out, own->gpu_without_launch, "piece of GPU work has no launch in the trace",
		  "pieces of GPU work have no launch in the trace");
	while (warnings.len) {
		const char *end = memchr(warnings.ptr, '\n', warnings.len);
		size_t len = end ? (size_t)(end - warnings.ptr) : warnings.len;

		gt_buf_text(out, is_part ? "of the whole trace: " : "");
		gt_safe_put(out, (struct gt_str){ warnings.ptr, len });
		gt_buf_byte(out, '\n');
		len += end != NULL;
		warnings.ptr += len;
		warnings.len -= len;
	}
}

void gt_summary_losses(const struct gt_summary *summary, struct gt_buf *out)
{
	const struct gt_trace_stats *read = &summary->read;
	const struct gt_gz_status *gz = &summary->gz;

	put_if(out, gz->cut, "the compressed file is cut: what it lost is missing here\n");
	put_count(
		out, gz->damages,
		"place in the compressed data is damaged; what stands just before may be wrong",
		"places in the compressed data are damaged; what stands just before may be wrong");
	put_if(out, gz->bad_checksum,
	       "the checksum of the compressed data is wrong: names and times may be, too\n");
	put_if(out, gz->trailing_junk, "bytes after the end of the compressed data were ignored\n");
	put_if(out, read->cut && !gz->cut, "the file is cut: what it lost is missing here\n");
	put_count(out, read->skipped, "damaged event could not be read",
		  "damaged events could not be read");
	put_count(out, read->repaired, "event was not JSON and was repaired",
		  "events were not JSON and were repaired");
	put_if(out, read->repeated, "traceEvents is there more than once; all were used\n");
	put_if(out, read->second_document,
	       "a second JSON document follows the trace; it was ignored\n");
	put_if(out, read->trailing && !read->second_document,
	       "text after the end of the trace was ignored\n");
	put_count(out, summary->without_dur, "event has no time or duration and was left out",
		  "events have no time or duration and were left out");
	put_count(out, summary->negative, "negative duration was taken as 0",
		  "negative durations were taken as 0");
	put_count(out, summary->clamped, "time is beyond 73 years and was taken as that",
		  "times are beyond 73 years and were taken as that");
	put_count(out, summary->not_spans, "slice is not one event of phase X and was left out",
		  "slices are not one event of phase X and were left out");
	if (summary->own.present)
		put_own(&summary->own, summary->copy.kind == GT_COPY_CUT, out);
}
