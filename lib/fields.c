#include "base.h"
#include "fields.h"

#include <stdarg.h>
#include <stdlib.h>

void gt_fields_add(struct gt_fields *fields, const char *key, const char *fmt, ...)
{
	char value[1024];
	size_t used;
	va_list args;
	char *c;
	int n;

	va_start(args, fmt);
	if (vsnprintf(value, sizeof(value), fmt, args) < 0)
		*value = '\0';
	va_end(args);
	for (c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	used = fields->len;
	n = snprintf(fields->text + used, sizeof(fields->text) - used, "%s %s\n", key, value);
	if (n < 0 || (size_t)n >= sizeof(fields->text) - used)
		fields->full = true;
	else
		fields->len += (size_t)n;
}

int gt_fields_check(const struct gt_fields *fields)
{
	const char *line = fields->text, *end = line + fields->len, *stop;

	if (!fields->len || fields->len >= sizeof(fields->text))
		return -EBADMSG;
	for (; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop || *line < 'a' || *line > 'z' ||
		    !memchr(line, ' ', (size_t)(stop - line)))
			return -EBADMSG;
		for (; line < stop; line++)
			if ((unsigned char)*line < ' ' || *line == 0x7f)
				return -EBADMSG;
	}
	return 0;
}

/* The value of the first key from line on, and its length; NULL: none. */
static const char *find(const struct gt_fields *fields, const char *line, const char *key,
			size_t *ret_len)
{
	const char *end = fields->text + fields->len, *stop;
	size_t key_len = strlen(key);

	for (; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			return NULL;
		if ((size_t)(stop - line) <= key_len || memcmp(line, key, key_len) ||
		    line[key_len] != ' ')
			continue;
		*ret_len = (size_t)(stop - line) - key_len - 1;
		return line + key_len + 1;
	}
	return NULL;
}

bool gt_fields_each(const struct gt_fields *fields, const char *key, const char **at, char *buf,
		    size_t len)
{
	size_t value_len;
	const char *value = find(fields, *at ? *at : fields->text, key, &value_len);

	if (!value)
		return false;
	*at = value + value_len + 1;
	value_len = GT_MIN(value_len, len - 1);
	memcpy(buf, value, value_len);
	buf[value_len] = '\0';
	return true;
}

bool gt_fields_get(const struct gt_fields *fields, const char *key, char *buf, size_t len)
{
	const char *at = NULL;

	return gt_fields_each(fields, key, &at, buf, len);
}

bool gt_fields_is(const struct gt_fields *fields, const char *key, const char *value)
{
	size_t len;
	const char *found = find(fields, fields->text, key, &len);

	return found && len == strlen(value) && !memcmp(found, value, len);
}

bool gt_fields_number(const struct gt_fields *fields, const char *key, uint64_t *ret)
{
	uint64_t number = 0;
	char text[24], *c;

	if (!gt_fields_get(fields, key, text, sizeof(text)) || !*text || strlen(text) > 18)
		return false;
	for (c = text; *c; c++) {
		if (*c < '0' || *c > '9')
			return false;
		number = number * 10 + (uint64_t)(*c - '0');
	}
	*ret = number;
	return true;
}
