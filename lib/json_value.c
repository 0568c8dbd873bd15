/*
 * json_value.c - what numbers and strings of JSON text say; see json_reader.h.
 */
#include "base.h"
#include "json_reader.h"
#include "utf8.h"

/* The most digits that a uint64_t holds whatever they are. */
#define MAX_DIGITS 19

struct decimal { /* digits * 10^exponent */
	uint64_t digits;
	int count; /* without leading zeros */
	int64_t exponent;
	bool negative;
};

static void push_digit(struct decimal *number, char digit, bool fraction)
{
	if (number->count >= MAX_DIGITS) {
		number->exponent += !fraction;
		return;
	}
	number->digits = number->digits * 10 + (uint64_t)(digit - '0');
	number->count += number->digits != 0;
	number->exponent -= fraction;
}

/* A minus that stands behind the point, as of a negative number that was printed by "%d.%03d",
 * where it takes the place of a digit. *at is moved behind it. */
static void read_inner_minus(const char **at, const char *end, struct decimal *ret)
{
	const int width = 3;
	int digits = 0;

	ret->negative = true;
	for (++*at; *at + digits < end && gt_is_digit((*at)[digits]);)
		digits++;
	for (; digits < width; digits++)
		push_digit(ret, '0', true);
}

/* [eE][+-]?[0-9]+; *at is moved behind it. */
static bool read_exponent(const char **at, const char *end, int64_t *exponent)
{
	bool negative = false;
	int64_t value = 0;

	if (++*at < end && (**at == '-' || **at == '+'))
		negative = *(*at)++ == '-';
	if (*at >= end || !gt_is_digit(**at))
		return false;
	for (; *at < end && gt_is_digit(**at); ++*at)
		value = GT_MIN(value * 10 + (**at - '0'), INT64_C(1000000));
	*exponent += negative ? -value : value;
	return true;
}

static bool read_decimal(const char *at, const char *end, struct decimal *ret)
{
	const char *digits;

	ret->negative = at < end && *at == '-';
	at += ret->negative;
	for (digits = at; at < end && gt_is_digit(*at); at++)
		push_digit(ret, *at, false);
	if (at == digits)
		return false;
	if (at < end && *at == '.') {
		if (++at < end && *at == '-')
			read_inner_minus(&at, end, ret);
		for (digits = at; at < end && gt_is_digit(*at); at++)
			push_digit(ret, *at, true);
		if (at == digits)
			return false;
	}
	if (at < end && (*at == 'e' || *at == 'E') && !read_exponent(&at, end, &ret->exponent))
		return false;
	return at == end;
}

/* digits * 10^exponent rounded to nearest, saturated at INT64_MAX. */
static int64_t scale(const struct decimal *number)
{
	uint64_t value = number->digits;
	uint64_t divisor = 1;

	if (number->exponent >= 0) {
		for (int64_t i = 0; value && i < number->exponent; i++) {
			if (__builtin_mul_overflow(value, 10, &value))
				return INT64_MAX;
		}
	} else {
		if (number->exponent < -MAX_DIGITS)
			return 0;
		for (int64_t i = number->exponent; i < 0; i++)
			divisor *= 10;
		value = value / divisor + (value % divisor >= divisor - divisor / 2);
	}
	return (int64_t)GT_MIN(value, (uint64_t)INT64_MAX);
}

bool gt_json_scaled(struct gt_str raw, int decimals, int64_t *ret)
{
	struct gt_str number = gt_json_unquote(raw);
	struct decimal decimal = { .exponent = decimals };
	int64_t value;

	if (!number.len || !read_decimal(number.ptr, number.ptr + number.len, &decimal))
		return false;
	value = scale(&decimal);
	*ret = decimal.negative ? -value : value;
	return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Four hexadecimal digits at *at, which ends at end; -1 when there are none. */
static int32_t read_hex4(const char *at, const char *end)
{
	int32_t value = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = at[i];

		if (gt_is_digit(c))
			value = value * 16 + (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = value * 16 + ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

/* at stands behind "\u"; returns the bytes taken, 0 when it is no escape. */
static size_t read_unicode(const char *at, const char *end, uint32_t *ret)
{
	int32_t high = read_hex4(at, end);
	int32_t low;

	if (high < 0)
		return 0;
	*ret = (uint32_t)high;
	if (high < 0xd800 || high > 0xdfff)
		return 4;
	*ret = GT_UTF8_REPLACEMENT;
	if (high > 0xdbff || end - at < 10 || at[4] != '\\' || at[5] != 'u')
		return 4;
	low = read_hex4(at + 6, end);
	if (low < 0xdc00 || low > 0xdfff)
		return 4;
	*ret = 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
	return 10;
}

size_t gt_json_unescape(struct gt_str raw, char *out)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *at, *end;
	char *next = out;

	if (!raw.len)
		return 0;
	at = raw.ptr;
	end = raw.ptr + raw.len;
	while (at < end) {
		const char *known;
		uint32_t code;
		size_t taken;

		if (*at != '\\' || at + 1 == end) {
			*next++ = *at++;
			continue;
		}
		known = at[1] ? strchr(from, at[1]) : NULL;
		if (known) {
			*next++ = to[known - from];
			at += 2;
			continue;
		}
		taken = at[1] == 'u' ? read_unicode(at + 2, end, &code) : 0;
		if (taken) {
			next += gt_utf8_encode(code, next);
			at += 2 + taken;
		} else {
			*next++ = *at++; /* not an escape: the backslash stands for itself */
		}
	}
	return (size_t)(next - out);
}

struct gt_str gt_json_key(struct gt_str raw, char plain[GT_JSON_KEY_MAX])
{
	if (raw.len > GT_JSON_KEY_MAX || !raw.len || !memchr(raw.ptr, '\\', raw.len))
		return raw;
	return (struct gt_str){ plain, gt_json_unescape(raw, plain) };
}

int gt_json_put_text(struct gt_buf *out, struct gt_str raw)
{
	struct gt_str text = gt_json_unquote(raw);
	char *to = gt_buf_reserve(out, text.len + 1);

	if (!to)
		return -ENOMEM;
	out->len += gt_json_unescape(text, to);
	return 0;
}
