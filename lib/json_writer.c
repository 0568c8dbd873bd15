#include "json_writer.h"
#include "utf8.h"

static const char digit_pairs[] = "0001020304050607080910111213141516171819"
				  "2021222324252627282930313233343536373839"
				  "4041424344454647484950515253545556575859"
				  "6061626364656667686970717273747576777879"
				  "8081828384858687888990919293949596979899";

static unsigned int digit_count(uint64_t value)
{
	unsigned int count = 1;

	for (; value >= 10000; value /= 10000)
		count += 4;
	return count + (value >= 10) + (value >= 100) + (value >= 1000);
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

char *gt_json_put_chars(char *p, struct gt_str str)
{
	size_t pos = 0;

	while (pos < str.len) {
		size_t len = plain_run(str.ptr + pos, str.len - pos);
		const char *at = str.ptr + pos;

		if (len) {
			memcpy(p, at, len);
			p += len;
		} else if ((unsigned char)*at < 0x80) {
			p = put_escape(p, (unsigned char)*at);
			len = 1;
		} else {
			p += gt_utf8_encode(gt_utf8_decode(at, str.len - pos, &len), p);
		}
		pos += len;
	}
	return p;
}

char *gt_json_put_str(char *p, struct gt_str str)
{
	*p++ = '"';
	p = gt_json_put_chars(p, str);
	*p++ = '"';
	return p;
}
