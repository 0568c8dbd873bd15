/*
 * kernel_name.c - see kernel_name.h.
 */
#include "base.h"
#include "demangle.h"
#include "kernel_name.h"

/* The '<' or '(' that belongs to the bracket at the end of text; text.len: there is none. */
static size_t opening(struct gt_str text, char open, char close)
{
	size_t depth = 0;

	for (size_t i = text.len; i--;) {
		depth += text.ptr[i] == close;
		if (text.ptr[i] == open && !--depth)
			return i;
	}
	return text.len;
}

static struct gt_str without_end(struct gt_str text, char open, char close)
{
	size_t at = text.len && text.ptr[text.len - 1] == close ? opening(text, open, close)
								: text.len;

	/* Not "(anonymous namespace)" alone. */
	if (at)
		text.len = at;
	return text;
}

/* Where the last of the names that are joined by "::" begins, or the one behind a return type. */
static size_t last_name(struct gt_str text)
{
	size_t at = text.len;

	while (at > 0 && text.ptr[at - 1] != ':' && text.ptr[at - 1] != ' ')
		at--;
	return at;
}

struct gt_str gt_kernel_base_name(struct gt_str name)
{
	struct gt_str base;
	size_t at;

	/* What follows them: "name(int) [clone .1]". */
	for (at = name.len; at > 0 && name.ptr[at - 1] != ')' && name.ptr[at - 1] != '>'; at--)
		;
	/* In "gemm_<float>_nt" it is a part of the name. */
	base = at && (at == name.len || name.ptr[at] == ' ') ? (struct gt_str){ name.ptr, at }
							     : name;
	base = without_end(without_end(base, '(', ')'), '<', '>');
	at = last_name(base);
	return at < base.len ? (struct gt_str){ base.ptr + at, base.len - at } : name;
}

/* ---- short names ----------------------------------------------------------------------------- */

/* "a::b" of "void a::b::": what stands before the name at 'at', without its "::". */
static struct gt_str scope_of(struct gt_str name, size_t at)
{
	if (at < 2 || name.ptr[at - 1] != ':' || name.ptr[at - 2] != ':')
		return (struct gt_str){ NULL, 0 };
	return (struct gt_str){ name.ptr, at - 2 };
}

static struct gt_str innermost(struct gt_str scope)
{
	size_t at = last_name(scope);

	return (struct gt_str){ scope.ptr + at, scope.len - at };
}

/* Of "Kernel<a::b<c>, d>" it is "b", as of "Kernel<a::b>". Empty: there is none. */
static struct gt_str first_argument(struct gt_str name, size_t at)
{
	struct gt_str argument = { NULL, 0 };
	size_t end;

	if (at >= name.len || name.ptr[at] != '<')
		return argument;
	for (end = ++at; end < name.len && !strchr("<>,(", name.ptr[end]); end++)
		;
	return innermost((struct gt_str){ name.ptr + at, end - at });
}

/* The function in which a lambda stands whose operator() is the kernel; empty: it is none. */
static struct gt_str function_of(struct gt_str scope)
{
	static const char lambda[] = "::{lambda";
	const size_t len = sizeof(lambda) - 1;

	for (size_t at = scope.len; at-- > 0;) {
		if (scope.len - at >= len && !memcmp(scope.ptr + at, lambda, len))
			return (struct gt_str){ scope.ptr, at };
	}
	return (struct gt_str){ NULL, 0 };
}

static struct gt_str short_name(struct gt_str name)
{
	struct gt_str base = gt_kernel_base_name(name);
	size_t at = (size_t)(base.ptr - name.ptr);
	struct gt_str scope = scope_of(name, at), space = innermost(scope), other;

	if (gt_str_equal(base, GT_STR("operator()"))) {
		other = function_of(scope);
		return other.len ? gt_kernel_base_name(other) : base;
	}
	if (gt_str_starts(space, GT_STR("cutlass")) &&
	    (gt_str_starts(base, GT_STR("Kernel")) ||
	     gt_str_equal(base, GT_STR("device_kernel")))) {
		other = first_argument(name, at + base.len);
		return other.len ? other : base;
	}
	if (space.len && base.len == 6 && gt_str_has_nocase(base, GT_STR("kernel")))
		return (struct gt_str){ space.ptr, space.len + 2 + base.len };
	return base;
}

void gt_kernel_put_short_name(struct gt_buf *out, struct gt_str name)
{
	struct gt_buf plain = { 0 };

	if (gt_demangle(name, &plain))
		name = gt_buf_str(&plain);
	name = short_name(name);
	gt_buf_append(out, name.ptr, name.len);
	out->failed |= plain.failed;
	gt_buf_release(&plain);
}
