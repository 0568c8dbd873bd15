#include "json_writer.h"

#include <stdlib.h>

void gt_json_release(struct gt_json *json)
{
	free(json->text);
	memset(json, 0, sizeof(*json));
}

char *gt_json_reserve(struct gt_json *json, size_t bytes)
{
	size_t cap = json->cap ? json->cap : 4096;
	char *text;

	if (GT_LIKELY(bytes <= json->cap - json->len))
		return json->text + json->len;
	if (bytes > SIZE_MAX / 4 - json->len)
		return NULL;
	while (cap - json->len < bytes)
		cap *= 2;
	text = realloc(json->text, cap);
	if (!text)
		return NULL;
	json->text = text;
	json->cap = cap;
	return text + json->len;
}

static const char digit_pairs[] = "0001020304050607080910111213141516171819"
				  "2021222324252627282930313233343536373839"
				  "4041424344454647484950515253545556575859"
				  "6061626364656667686970717273747576777879"
				  "8081828384858687888990919293949596979899";

static unsigned int digit_count(uint64_t value)
{
	static const uint64_t powers[] = {
		UINT64_C(0),
		UINT64_C(10),
		UINT64_C(100),
		UINT64_C(1000),
		UINT64_C(10000),
		UINT64_C(100000),
		UINT64_C(1000000),
		UINT64_C(10000000),
		UINT64_C(100000000),
		UINT64_C(1000000000),
		UINT64_C(10000000000),
		UINT64_C(100000000000),
		UINT64_C(1000000000000),
		UINT64_C(10000000000000),
		UINT64_C(100000000000000),
		UINT64_C(1000000000000000),
		UINT64_C(10000000000000000),
		UINT64_C(100000000000000000),
		UINT64_C(1000000000000000000),
		UINT64_C(10000000000000000000),
	};
	unsigned int bits = 64 - (unsigned int)__builtin_clzll(value | 1);
	unsigned int guess = bits * 1233 >> 12; /* bits * log10(2) */

	return guess + (value >= powers[guess]);
}

/* The last count digits of value, with leading zeros. */
static void put_digits(char *p, uint64_t value, unsigned int count)
{
	while (count >= 2) {
		count -= 2;
		memcpy(p + count, digit_pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (count)
		*p = (char)('0' + value % 10);
}

char *gt_json_put_u64(char *p, uint64_t value)
{
	unsigned int count;

	if (value < 10) {
		*p = (char)('0' + value);
		return p + 1;
	}
	count = digit_count(value);
	put_digits(p, value, count);
	return p + count;
}

char *gt_json_put_i64(char *p, int64_t value)
{
	if (value >= 0)
		return gt_json_put_u64(p, (uint64_t)value);
	*p++ = '-';
	return gt_json_put_u64(p, -(uint64_t)value);
}

char *gt_json_put_us(char *p, uint64_t ns)
{
	p = gt_json_put_u64(p, ns / 1000);
	*p = '.';
	put_digits(p + 1, ns % 1000, 3);
	return p + 4;
}

char *gt_json_put_micro(char *p, uint64_t micro)
{
	p = gt_json_put_u64(p, micro / 1000000);
	*p = '.';
	put_digits(p + 1, micro % 1000000, 6);
	p += 7;
	while (p[-1] == '0' && p[-2] != '.')
		p--;
	return p;
}

/* How many of the bytes at s go into a JSON string as they are: ASCII without " \ controls, DEL. */
static size_t plain_run(const char *s, size_t len)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t high = ones << 7;
	size_t i = 0;

	for (; len - i >= 8; i += 8) {
		uint64_t v, quote, slash, del, bad;

		memcpy(&v, s + i, 8);
		quote = v ^ ones * '"';
		slash = v ^ ones * '\\';
		del = v ^ ones * 0x7f;
		bad = (v - ones * 0x20) | (quote - ones) | (slash - ones) | (del - ones) | v;
		if (bad & high)
			break;
	}
	for (; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			break;
	}
	return i;
}

static char *put_escape(char *p, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";

	*p++ = '\\';
	switch (c) {
	case '"':
	case '\\':
		*p++ = (char)c;
		return p;
	case '\n':
		*p++ = 'n';
		return p;
	case '\t':
		*p++ = 't';
		return p;
	case '\r':
		*p++ = 'r';
		return p;
	default:
		p = GT_JSON_PUT(p, "u00");
		*p++ = hex[c >> 4];
		*p++ = hex[c & 15];
		return p;
	}
}

/*
 * Length of the UTF-8 sequence at s, which starts with a byte >= 0x80; *valid says whether it is
 * one, else the length is that of its longest possible piece (Unicode 15, table 3-7 and 3.9).
 */
static size_t utf8_sequence(const unsigned char *s, size_t len, bool *valid)
{
	unsigned char low = 0x80, top = 0xbf;
	size_t need, i;

	*valid = false;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		need = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		need = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		need = 4;
	else
		return 1;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		top = 0x9f; /* no surrogates */
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		top = 0x8f; /* nothing above U+10FFFF */
	for (i = 1; i < need; i++) {
		if (i >= len || s[i] < low || s[i] > top)
			return i;
		low = 0x80;
		top = 0xbf;
	}
	*valid = true;
	return need;
}

char *gt_json_put_chars(char *p, const char *str, size_t len)
{
	size_t pos = 0;

	while (pos < len) {
		size_t run = plain_run(str + pos, len - pos);
		unsigned char c;
		bool valid;

		if (run) {
			memcpy(p, str + pos, run);
			p += run;
			pos += run;
			continue;
		}
		c = (unsigned char)str[pos];
		if (c < 0x80) {
			p = put_escape(p, c);
			pos++;
			continue;
		}
		run = utf8_sequence((const unsigned char *)str + pos, len - pos, &valid);
		if (valid) {
			memcpy(p, str + pos, run);
			p += run;
		} else {
			p = GT_JSON_PUT(p, "\xef\xbf\xbd");
		}
		pos += run;
	}
	return p;
}

char *gt_json_put_str(char *p, const char *str, size_t len)
{
	*p++ = '"';
	p = gt_json_put_chars(p, str, len);
	*p++ = '"';
	return p;
}
