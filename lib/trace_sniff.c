/*
 * trace_sniff.c - tells what a file is that is no trace, see trace_reader.h, and where events begin
 * and end, see trace_sniff.h.
 */
#include "base.h"
#include "trace_reader.h"
#include "trace_sniff.h"

static const struct {
	struct gt_str magic;
	const char *what;
} magics[] = {
	{ GT_STR("PK\x03\x04"), "a zip archive: unpack it first" },
	{ GT_STR("\x1f\x8b"), "gzip inside gzip: unpack it once" },
	{ GT_STR("\x28\xb5\x2f\xfd"), "zstd data: unpack it first" },
	{ GT_STR("\xfd"
		 "7zXZ"),
	  "xz data: unpack it first" },
	{ GT_STR("BZh"), "bzip2 data: unpack it first" },
	{ GT_STR("\x04\x22\x4d\x18"), "lz4 data: unpack it first" },
	{ GT_STR("\x78\x01"), "a zlib stream: unpack it first" },
	{ GT_STR("\x78\x5e"), "a zlib stream: unpack it first" },
	{ GT_STR("\x78\x9c"), "a zlib stream: unpack it first" },
	{ GT_STR("\x78\xda"), "a zlib stream: unpack it first" },
	{ GT_STR("\xff\xfe"), "UTF-16 text: convert it to UTF-8" },
	{ GT_STR("\xfe\xff"), "UTF-16 text: convert it to UTF-8" },
	{ GT_STR("\x80\x02"), "a Python pickle" },
	{ GT_STR("\x80\x03"), "a Python pickle" },
	{ GT_STR("\x80\x04"), "a Python pickle" },
	{ GT_STR("\x80\x05"), "a Python pickle" },
	{ GT_STR("version https://git-lfs"),
	  "a Git LFS pointer: fetch the file with 'git lfs pull'" },
	{ GT_STR("SQLite format 3"), "an SQLite database, perhaps of nsys" },
	{ GT_STR("\x7f"
		 "ELF"),
	  "an ELF binary" },
	{ GT_STR("%PDF"), "a PDF" },
	{ GT_STR("\x89PNG"), "a PNG image" },
};

/* A tar archive begins with a file's name, and says what it is behind the header's other fields. */
static bool is_tar(struct gt_str head)
{
	static const size_t magic_offset = 257;

	return head.len > magic_offset &&
	       gt_str_starts((struct gt_str){ head.ptr + magic_offset, head.len - magic_offset },
			     GT_STR("ustar"));
}

/* Of ASCII in UTF-16 every other byte is 0, and no other is. */
static bool contains_nul_pairs(struct gt_str head)
{
	size_t even = 0, odd = 0;

	for (size_t i = 0; i + 1 < head.len; i += 2) {
		even += head.ptr[i] == 0;
		odd += head.ptr[i + 1] == 0;
	}
	return head.len >= 8 && (even > head.len / 3) != (odd > head.len / 3);
}

static bool is_text(struct gt_str head)
{
	for (size_t i = 0; i < head.len; i++) {
		unsigned char byte = (unsigned char)head.ptr[i];

		if (byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' &&
				     byte != '\f' && byte != 0x1b))
			return false;
	}
	return true;
}

/* The index of the first byte from at on that is none of set. */
static size_t skip_any(struct gt_str text, size_t at, const char *set)
{
	while (at < text.len && text.ptr[at] && strchr(set, text.ptr[at]))
		at++;
	return at;
}

const char *gt_trace_looks_like(struct gt_str head)
{
	size_t i, next;

	for (i = 0; i < ARRAY_SIZE(magics); i++) {
		if (gt_str_starts(head, magics[i].magic))
			return magics[i].what;
	}
	if (is_tar(head))
		return "a tar archive: unpack it first";
	if (contains_nul_pairs(head))
		return "UTF-16 text: convert it to UTF-8";
	if (gt_str_starts(head, GT_STR("\xef\xbb\xbf"))) {
		head.ptr += 3;
		head.len -= 3;
	}
	i = skip_any(head, 0, " \t\r\n");
	if (i == head.len)
		return NULL;
	if (head.ptr[i] == '<')
		return "an HTML or XML page";
	if (head.ptr[i] != '{' && head.ptr[i] != '[')
		return is_text(head) ? "text that is not JSON" : "binary data";
	next = skip_any(head, i, " \t\r\n[{");
	if (next < head.len && head.ptr[next] == '\'')
		return "Python's print of an object: write it with json.dump";
	next = skip_any(head, i + 1, " \t\r\n");
	if (head.ptr[i] == '{' && next < head.len && !strchr("\"},", head.ptr[next]))
		return "text that is not JSON";
	return NULL;
}

static bool is_one_of(const char *at, const char *end, const struct gt_str *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if ((size_t)(end - at) > words[i].len && at[words[i].len] == '"' &&
		    !memcmp(at, words[i].ptr, words[i].len))
			return true;
	}
	return false;
}

bool gt_trace_event_begins(const char *at, const char *start, const char *end)
{
	static const struct gt_str keys[] = {
		GT_STR("ph"),   GT_STR("cat"), GT_STR("name"), GT_STR("pid"),
		GT_STR("tid"),  GT_STR("ts"),  GT_STR("dur"),  GT_STR("id"),
		GT_STR("args"), GT_STR("s"),   GT_STR("bp"),
	};
	const char *before = at;
	const char *key = gt_json_skip_space(at + 1);

	if (*key != '"' || !is_one_of(key + 1, end, keys, ARRAY_SIZE(keys)))
		return false;
	while (before > start && (unsigned char)before[-1] <= ' ' && before[-1])
		before--;
	return before == start || before[-1] != ':';
}

bool gt_trace_events_end(const char *at, const char *end, bool ended, bool is_array)
{
	static const struct gt_str keys[] = {
		GT_STR("traceName"),       GT_STR("displayTimeUnit"), GT_STR("baseTimeNanoseconds"),
		GT_STR("distributedInfo"), GT_STR("schemaVersion"),   GT_STR("deviceProperties"),
		GT_STR("metadata"),        GT_STR("otherData"),       GT_STR("gtrace"),
		GT_STR("stackFrames"),     GT_STR("samples"),         GT_STR("systemTraceEvents"),
	};

	at = gt_json_skip_space(at + 1);
	if (is_array || *at == '}')
		return ended && gt_json_skip_space(at + !is_array) >= end;
	if (*at != ',')
		return false;
	at = gt_json_skip_space(at + 1);
	return *at == '"' && is_one_of(at + 1, end, keys, ARRAY_SIZE(keys));
}
