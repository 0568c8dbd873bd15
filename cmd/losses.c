#include "base.h"
#include "die.h"
#include "losses.h"

void warn_of_losses(const struct gt_summary *summary, const char *path)
{
	struct gt_buf losses = { 0 };
	const char *at, *end;

	gt_summary_losses(summary, &losses);
	for (at = losses.data; at && at < losses.data + losses.len; at = end + 1) {
		end = memchr(at, '\n', (size_t)(losses.data + losses.len - at));
		warn("%s: %.*s", path, (int)(end - at), at);
	}
	gt_buf_release(&losses);
}
