#include "deflate.h"
#include "huffman.h"

#include <stdlib.h>

#define TOKENS_MAX     32768 /* of a block */
#define MATCH_MIN      3
#define MATCH_MAX      258
#define HASH_BITS      13
#define LITLEN_SYMBOLS 286
#define DIST_SYMBOLS   30
#define PRECODE        19
#define END_OF_BLOCK   256

/* Shorter matches cost more than the literals they replace. */
#define HINT_MATCH_MIN 4
#define HASH_MATCH_MIN 5

/* Costs in eighths of a bit, as they come out for traces: where hints are, literals are digits. */
#define DIGIT_COST  32
#define LETTER_COST 56
#define MATCH_COST  72 /* and 8 for each bit of the distance */

#define CHAIN_MAX   6 /* so many places with the same four bytes are looked at */
#define HASH_STRIDE 2 /* of the bytes inside a match so few are entered in the hash table */

struct gt_deflate {
	uint32_t tokens[TOKENS_MAX]; /* a literal, or length << 16 | distance */
	unsigned int token_count;
	uint32_t litlen_freq[LITLEN_SYMBOLS];
	uint32_t dist_freq[DIST_SYMBOLS];
	uint64_t bits; /* not written yet, the first one lowest */
	unsigned int bit_count;
	uint32_t total;                     /* bytes of text so far, modulo 2^32 */
	size_t since_flush;                 /* bytes of text */
	uint32_t seen[1 << HASH_BITS];      /* where four bytes were seen last, as total counts */
	uint32_t before[GT_DEFLATE_WINDOW]; /* and before that, by total modulo the window */
};

int gt_deflate_new(struct gt_deflate **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void gt_deflate_free(struct gt_deflate *deflate)
{
	free(deflate);
}

/* ---- symbols: RFC 1951, 3.2.5 ---- */

struct symbol {
	uint16_t code;
	uint8_t extra_bits;
	uint16_t extra;
};

static struct symbol length_symbol(unsigned int len)
{
	unsigned int v = len - MATCH_MIN, log;

	if (len == MATCH_MAX)
		return (struct symbol){ 285, 0, 0 };
	if (v < 8)
		return (struct symbol){ (uint16_t)(257 + v), 0, 0 };
	log = 31 - (unsigned int)__builtin_clz(v);
	return (struct symbol){ (uint16_t)(257 + 4 * (log - 1) + (v >> (log - 2) & 3)),
				(uint8_t)(log - 2), (uint16_t)(v & ((1u << (log - 2)) - 1)) };
}

static struct symbol dist_symbol(unsigned int dist)
{
	unsigned int v = dist - 1, log;

	if (v < 4)
		return (struct symbol){ (uint16_t)v, 0, 0 };
	log = 31 - (unsigned int)__builtin_clz(v);
	return (struct symbol){ (uint16_t)(2 * log + (v >> (log - 1) & 1)), (uint8_t)(log - 1),
				(uint16_t)(v & ((1u << (log - 1)) - 1)) };
}

/* ---- bits ---- */

struct bit_writer {
	uint64_t bits;
	unsigned int count;
	char *p;
};

/* n <= 32; at least 8 bytes behind p can be written */
static inline void put_bits(struct bit_writer *w, uint64_t value, unsigned int n)
{
	w->bits |= value << w->count;
	w->count += n;
	if (w->count >= 32) {
		uint32_t word = (uint32_t)w->bits;
		unsigned int i;

		for (i = 0; i < 4; i++)
			w->p[i] = (char)(word >> 8 * i);
		w->p += 4;
		w->bits >>= 32;
		w->count -= 32;
	}
}

static bool writer_begin(struct bit_writer *w, const struct gt_deflate *d, struct gt_buf *out,
			 size_t bytes)
{
	w->p = gt_buf_reserve(out, bytes + 16);
	w->bits = d->bits;
	w->count = d->bit_count;
	return w->p;
}

static void writer_end(const struct bit_writer *w, struct gt_deflate *d, struct gt_buf *out)
{
	out->len = (size_t)(w->p - out->data);
	d->bits = w->bits;
	d->bit_count = w->count;
}

/* ---- blocks ---- */

struct code_lengths { /* of a dynamic block's two codes, run-length coded: RFC 1951, 3.2.7 */
	uint8_t symbols[LITLEN_SYMBOLS + DIST_SYMBOLS];
	uint8_t extra[LITLEN_SYMBOLS + DIST_SYMBOLS];
	unsigned int count;
	unsigned int litlen_count;
	unsigned int dist_count;
	uint32_t freq[PRECODE];
};

static unsigned int used_count(const struct gt_huffman_code *code, unsigned int count,
			       unsigned int least)
{
	while (count > least && !code->len[count - 1])
		count--;
	return count;
}

static void add_length(struct code_lengths *lengths, unsigned int symbol, unsigned int extra)
{
	lengths->symbols[lengths->count] = (uint8_t)symbol;
	lengths->extra[lengths->count++] = (uint8_t)extra;
	lengths->freq[symbol]++;
}

static void code_lengths(struct code_lengths *lengths, const struct gt_huffman_code *litlen,
			 const struct gt_huffman_code *dist)
{
	uint8_t all[LITLEN_SYMBOLS + DIST_SYMBOLS];
	unsigned int total, i, run;

	memset(lengths, 0, sizeof(*lengths));
	lengths->litlen_count = used_count(litlen, LITLEN_SYMBOLS, 257);
	lengths->dist_count = used_count(dist, DIST_SYMBOLS, 1);
	memcpy(all, litlen->len, lengths->litlen_count);
	memcpy(all + lengths->litlen_count, dist->len, lengths->dist_count);
	total = lengths->litlen_count + lengths->dist_count;
	for (i = 0; i < total; i += run) {
		for (run = 1; i + run < total && all[i + run] == all[i]; run++)
			;
		if (all[i] == 0 && run >= 3) {
			run = GT_MIN(run, 138u);
			if (run >= 11)
				add_length(lengths, 18, run - 11);
			else
				add_length(lengths, 17, run - 3);
		} else if (run >= 4) {
			run = GT_MIN(run, 7u); /* one as it is and six repetitions */
			add_length(lengths, all[i], 0);
			add_length(lengths, 16, run - 4);
		} else {
			run = 1;
			add_length(lengths, all[i], 0);
		}
	}
}

static void put_dynamic_header(struct bit_writer *w, const struct gt_huffman_code *litlen,
			       const struct gt_huffman_code *dist)
{
	static const uint8_t order[PRECODE] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
						11, 4,  12, 3, 13, 2, 14, 1, 15 };
	static const uint8_t extra_bits[PRECODE] = { [16] = 2, [17] = 3, [18] = 7 };
	struct code_lengths lengths;
	struct gt_huffman_code pre;
	unsigned int count = PRECODE, i;

	code_lengths(&lengths, litlen, dist);
	gt_huffman_build(&pre, lengths.freq, PRECODE, 7);
	while (count > 4 && !pre.len[order[count - 1]])
		count--;
	put_bits(w, lengths.litlen_count - 257, 5);
	put_bits(w, lengths.dist_count - 1, 5);
	put_bits(w, count - 4, 4);
	for (i = 0; i < count; i++)
		put_bits(w, pre.len[order[i]], 3);
	for (i = 0; i < lengths.count; i++) {
		unsigned int symbol = lengths.symbols[i];

		put_bits(w, pre.bits[symbol], pre.len[symbol]);
		put_bits(w, lengths.extra[i], extra_bits[symbol]);
	}
}

static void put_tokens(struct bit_writer *w, const struct gt_deflate *d,
		       const struct gt_huffman_code *litlen, const struct gt_huffman_code *dist)
{
	unsigned int i;

	for (i = 0; i < d->token_count; i++) {
		unsigned int len = d->tokens[i] >> 16, low = d->tokens[i] & 0xffff;
		struct symbol s;

		if (!len) {
			put_bits(w, litlen->bits[low], litlen->len[low]);
			continue;
		}
		s = length_symbol(len);
		put_bits(w, litlen->bits[s.code] | (uint32_t)s.extra << litlen->len[s.code],
			 litlen->len[s.code] + s.extra_bits);
		s = dist_symbol(low);
		put_bits(w, dist->bits[s.code] | (uint32_t)s.extra << dist->len[s.code],
			 dist->len[s.code] + s.extra_bits);
	}
	put_bits(w, litlen->bits[END_OF_BLOCK], litlen->len[END_OF_BLOCK]);
}

static void write_block(struct gt_deflate *d, bool final, struct gt_buf *out)
{
	struct gt_huffman_code litlen, dist;
	struct bit_writer w;

	d->litlen_freq[END_OF_BLOCK] = 1;
	gt_huffman_build(&litlen, d->litlen_freq, LITLEN_SYMBOLS, 15);
	gt_huffman_build(&dist, d->dist_freq, DIST_SYMBOLS, 15);
	/* A header is at most 17 + 19 * 3 + 316 * 14 bits, a token at most 48. */
	if (writer_begin(&w, d, out, 1024 + (size_t)d->token_count * 6)) {
		put_bits(&w, final, 1);
		put_bits(&w, 2, 2); /* dynamic codes */
		put_dynamic_header(&w, &litlen, &dist);
		put_tokens(&w, d, &litlen, &dist);
		writer_end(&w, d, out);
	}
	d->token_count = 0;
	memset(d->litlen_freq, 0, sizeof(d->litlen_freq));
	memset(d->dist_freq, 0, sizeof(d->dist_freq));
}

/* Bring the bits to a byte boundary and out. */
static void put_aligned(struct gt_deflate *d, struct gt_buf *out)
{
	for (; d->bit_count; d->bit_count -= GT_MIN(d->bit_count, 8u)) {
		gt_buf_byte(out, (char)d->bits);
		d->bits >>= 8;
	}
}

void gt_deflate_flush(struct gt_deflate *d, bool final, struct gt_buf *out)
{
	if (final || d->token_count)
		write_block(d, final, out);
	if (!final) {
		struct bit_writer w;

		if (writer_begin(&w, d, out, 1)) { /* a stored block of no bytes */
			put_bits(&w, 0, 3);
			writer_end(&w, d, out);
		}
	}
	put_aligned(d, out);
	if (!final)
		gt_buf_append(out, "\0\0\xff\xff", 4);
	d->since_flush = 0;
}

/* ---- matches ---- */

static void add_literal(struct gt_deflate *d, unsigned char byte)
{
	d->tokens[d->token_count++] = byte;
	d->litlen_freq[byte]++;
}

static void add_match(struct gt_deflate *d, unsigned int len, unsigned int dist)
{
	d->tokens[d->token_count++] = len << 16 | dist;
	d->litlen_freq[length_symbol(len).code]++;
	d->dist_freq[dist_symbol(dist).code]++;
}

/* How many of the bytes at a, at most max, are those at b. */
static unsigned int match_length(const char *a, const char *b, unsigned int max)
{
	unsigned int len = 0;

	while (max - len >= 8) {
		uint64_t x, y;

		memcpy(&x, a + len, 8);
		memcpy(&y, b + len, 8);
		x ^= y;
		if (x) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return len + (unsigned int)__builtin_ctzll(x) / 8;
#else
			return len + (unsigned int)__builtin_clzll(x) / 8;
#endif
		}
		len += 8;
	}
	while (len < max && a[len] == b[len])
		len++;
	return len;
}

struct match {
	uint32_t len; /* 0: none */
	uint32_t dist;
};

struct source {
	const char *text;
	size_t from;  /* where the new text begins */
	size_t start; /* of what may be referred to */
	size_t to;
};

static struct match match_at(const struct source *src, size_t at, uint32_t dist, unsigned int least)
{
	struct match match = { 0, dist };

	if (!dist || dist > GT_MIN(at - src->start, (size_t)GT_DEFLATE_WINDOW))
		return match;
	match.len = match_length(src->text + at, src->text + at - dist,
				 (unsigned int)GT_MIN(src->to - at, (size_t)MATCH_MAX));
	if (match.len < least)
		match.len = 0;
	return match;
}

static int match_cost(uint32_t dist)
{
	return MATCH_COST + 8 * (32 - __builtin_clz(dist));
}

static uint32_t hash_at(const struct source *src, size_t at)
{
	uint32_t word;

	memcpy(&word, src->text + at, 4);
	return word * UINT32_C(0x9e3779b1) >> (32 - HASH_BITS);
}

/* Remember what stands at 'at'. */
static void enter(struct gt_deflate *d, const struct source *src, size_t at)
{
	uint32_t now = d->total + (uint32_t)(at - src->from), *seen;

	if (src->to - at < 4)
		return;
	seen = &d->seen[hash_at(src, at)];
	d->before[now % GT_DEFLATE_WINDOW] = *seen;
	*seen = now;
}

/*
 * How much cheaper a match is than to go on with literals, to the next hint and the match there
 * (of next_len bytes) if there is one.
 */
static int gain(const struct match *match, size_t at, const struct gt_deflate_hint *next,
		uint32_t next_len)
{
	uint32_t gap;
	int cost = match_cost(match->dist);

	if (!next)
		return match->len < HASH_MATCH_MIN ? 0 : (int)match->len * LETTER_COST - cost;
	gap = (uint32_t)(next->at - at);
	if (match->len <= gap)
		return (int)match->len * DIGIT_COST - cost;
	if (match->len < gap + next_len) /* the match of the hint goes on behind it */
		return (int)gap * DIGIT_COST - cost;
	return (int)(match->len - next_len) * DIGIT_COST + (next_len ? match_cost(next->dist) : 0) -
	       cost;
}

/* The best of the last matches with what stands at 'at'; none when literals are cheaper. */
static struct match search(const struct gt_deflate *d, const struct source *src, size_t at,
			   const struct gt_deflate_hint *next, uint32_t next_len)
{
	uint32_t now = d->total + (uint32_t)(at - src->from), where, last = 0;
	struct match best = { 0, 0 };
	int best_gain = 0, i;

	if (src->to - at < 4)
		return best;
	where = d->seen[hash_at(src, at)];
	for (i = 0; i < CHAIN_MAX; i++) {
		struct match match = match_at(src, at, now - where, HINT_MATCH_MIN);
		int this_gain = match.len ? gain(&match, at, next, next_len) : 0;

		if (match.dist <= last || match.dist > GT_DEFLATE_WINDOW)
			break; /* the chain was overwritten */
		last = match.dist;
		if (this_gain > best_gain) {
			best_gain = this_gain;
			best = match;
		}
		where = d->before[where % GT_DEFLATE_WINDOW];
	}
	return best;
}

void gt_deflate_text(struct gt_deflate *d, const char *text, size_t from, size_t to,
		     const struct gt_deflate_hint *hints, size_t hint_count, struct gt_buf *out)
{
	const struct source src = { text, from, gt_sub(from, d->since_flush), to };
	const struct gt_deflate_hint *end = hint_count ? hints + hint_count : hints;
	const struct gt_deflate_hint *next = NULL; /* when what is before it is hinted at, too */
	uint32_t dist = 0, next_len = 0;
	size_t at = from, i;

	while (at < to) {
		struct match match;

		if (hints < end && hints->at <= at) {
			dist = hints++->dist;
			if (hints < end && hints->at <= at)
				continue;
			next = dist && hints < end && hints->at < to ? hints : NULL;
			if (next)
				next_len = match_at(&src, next->at, next->dist, HINT_MATCH_MIN).len;
		}
		match = match_at(&src, at, dist, HINT_MATCH_MIN);
		if (!match.len) {
			match = search(d, &src, at, next, next_len);
			enter(d, &src, at);
		}
		if (match.len) {
			add_match(d, match.len, match.dist);
			for (i = HASH_STRIDE; i < match.len; i += HASH_STRIDE)
				enter(d, &src, at + i);
			at += match.len;
		} else {
			add_literal(d, (unsigned char)text[at++]);
		}
		if (d->token_count == TOKENS_MAX)
			write_block(d, false, out);
	}
	d->total += (uint32_t)(to - from);
	d->since_flush += to - from;
}
