/* A set of small integers as a bit array that grows to the largest member. Words above n_words
 * count as zero. */
#include "lib/base/idset.h"

#include <errno.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"

#define ID_MAX 131071
#define ID_DIGITS_MAX 6

void mo_idset_done(struct mo_idset *s)
{
	free(s->words);
	*s = (struct mo_idset){ 0 };
}

static void grow(struct mo_idset *s, size_t n_words)
{
	if (n_words <= s->n_words)
		return;
	s->words = mo_realloc_array(s->words, n_words, sizeof(*s->words));
	memset(s->words + s->n_words, 0, (n_words - s->n_words) * sizeof(*s->words));
	s->n_words = n_words;
	mo_assert(s->n_words * 64 <= ID_MAX + 1 + 63);
}

void mo_idset_add(struct mo_idset *s, size_t id)
{
	if (id > ID_MAX)
		return;
	grow(s, id / 64 + 1);
	assert(s->words);
	s->words[id / 64] |= UINT64_C(1) << (id % 64);
}

static void add_range(struct mo_idset *s, size_t first, size_t last)
{
	size_t from = first / 64, to = last / 64;
	uint64_t head = ~UINT64_C(0) << (first % 64), tail = ~UINT64_C(0) >> (63 - last % 64);

	mo_assert(first <= last && last <= ID_MAX);
	grow(s, to + 1);
	assert(s->words);
	if (from == to) {
		s->words[from] |= head & tail;
		return;
	}
	s->words[from] |= head;
	memset(&s->words[from + 1], 0xff, (to - from - 1) * sizeof(*s->words));
	s->words[to] |= tail;
}

bool mo_idset_has(const struct mo_idset *s, size_t id)
{
	return id / 64 < s->n_words && (s->words[id / 64] >> (id % 64)) & 1;
}

/* One decimal number at *p; *p moves behind it. */
static int parse_id(const char **p, size_t *ret)
{
	size_t id = 0, digits = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++) {
		if (++digits > ID_DIGITS_MAX)
			return -ERANGE;
		id = id * 10 + (size_t)(**p - '0');
	}
	if (digits == 0)
		return -EINVAL;
	if (id > ID_MAX)
		return -ERANGE;
	mo_assert(id <= ID_MAX);
	*ret = id;
	return 0;
}

int mo_idset_parse(const char *text, struct mo_idset *ret)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	const char *p = text;
	size_t first, last;
	int r;

	while (*p) {
		r = parse_id(&p, &first);
		if (r < 0)
			return r;
		last = first;
		if (*p == '-') {
			p++;
			r = parse_id(&p, &last);
			if (r < 0)
				return r;
			if (last < first)
				return -EINVAL;
		}
		add_range(&set, first, last);
		if (*p == ',' && p[1])
			p++;
		else if (*p)
			return -EINVAL;
	}
	mo_idset_done(ret);
	*ret = set;
	set = (struct mo_idset){ 0 };
	return 0;
}

char *mo_idset_format(const struct mo_idset *s)
{
	struct mo_buf b = { 0 };

	for (int64_t first = mo_idset_next(s, 0), last; first >= 0;
	     first = mo_idset_next(s, last + 1)) {
		for (last = first; mo_idset_has(s, (size_t)last + 1); last++)
			;
		mo_buf_printf(&b, "%s%lld", b.len ? "," : "", (long long)first);
		if (last > first)
			mo_buf_printf(&b, "-%lld", (long long)last);
	}
	return mo_buf_take(&b);
}

size_t mo_idset_count(const struct mo_idset *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_words; i++)
		n += (size_t)__builtin_popcountll(s->words[i]);
	return n;
}

int64_t mo_idset_next(const struct mo_idset *s, int64_t from)
{
	size_t start = from < 0 ? 0 : (size_t)from;
	uint64_t word;

	mo_assert(s->words || s->n_words == 0);
	for (size_t i = start / 64; i < s->n_words; i++) {
		word = s->words[i];
		if (i == start / 64)
			word &= ~UINT64_C(0) << (start % 64);
		if (word)
			return (int64_t)(i * 64) + __builtin_ctzll(word);
	}
	return -1;
}

void mo_idset_copy(struct mo_idset *dst, const struct mo_idset *src)
{
	if (dst == src)
		return;
	mo_idset_done(dst);
	grow(dst, src->n_words);
	if (src->n_words)
		memcpy(dst->words, src->words, src->n_words * sizeof(*src->words));
}

void mo_idset_and(struct mo_idset *dst, const struct mo_idset *b)
{
	mo_assert(dst->words || dst->n_words == 0);
	for (size_t i = 0; i < dst->n_words; i++)
		dst->words[i] &= i < b->n_words ? b->words[i] : 0;
}

void mo_idset_or(struct mo_idset *dst, const struct mo_idset *b)
{
	grow(dst, b->n_words);
	for (size_t i = 0; i < b->n_words; i++)
		dst->words[i] |= b->words[i];
}

void mo_idset_andnot(struct mo_idset *dst, const struct mo_idset *b)
{
	for (size_t i = 0; i < dst->n_words && i < b->n_words; i++)
		dst->words[i] &= ~b->words[i];
}

bool mo_idset_equal(const struct mo_idset *a, const struct mo_idset *b)
{
	for (size_t i = 0; i < a->n_words || i < b->n_words; i++)
		if ((i < a->n_words ? a->words[i] : 0) != (i < b->n_words ? b->words[i] : 0))
			return false;
	return true;
}
