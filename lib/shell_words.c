#include "base.h"
#include "shell_words.h"

void gt_shell_put(struct gt_buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";

	if (*word && !word[strspn(word, plain)]) {
		gt_buf_text(out, word);
		return;
	}
	gt_buf_byte(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			gt_buf_text(out, "'\\''");
		else
			gt_buf_byte(out, *word);
	}
	gt_buf_byte(out, '\'');
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

int gt_shell_split(char *text, char **words, size_t max)
{
	char *from = text, *to = text;
	size_t count = 0;

	for (;;) {
		char quote = 0;

		while (is_blank(*from))
			from++;
		if (!*from)
			return (int)count;
		if (count == max)
			return -E2BIG;
		words[count++] = to;
		for (; *from && (quote || !is_blank(*from)); from++) {
			if (*from == quote)
				quote = 0;
			else if (!quote && (*from == '\'' || *from == '"'))
				quote = *from;
			else if (*from == '\\' && quote != '\'' && from[1])
				*to++ = *++from;
			else
				*to++ = *from;
		}
		if (quote)
			return -EINVAL;
		if (*from)
			from++;
		*to++ = 0; /* never beyond what was read: a blank, a quote or the end */
	}
}
