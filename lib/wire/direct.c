/* See direct.h. A false of any function here ends the reading. */
#include "lib/wire/direct.h"

#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "lib/wire/parse.h"

#define AT(type, obj, f) ((type *)((char *)(obj) + (f)->offset))
#define COUNT(obj, f) (*(size_t *)((char *)(obj) + (f)->count_offset))

#define DEPTH_MAX 24   /* below the tree's */
#define FIELDS_MAX 256 /* of one description */
#define DIGITS_MAX 18  /* no such number overflows; more of them are no number here */
#define WORD_MAX 64    /* names, ids, times and reals are shorter */

struct reader {
	const char *at, *end;
	bool strict;
	int depth;
	size_t elements;
};

static bool object(struct reader *r, const struct mo_desc *d, void *obj);

static bool take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

/* What stands between two quotes. */
static bool text(struct reader *r, const char **ret, size_t *ret_n)
{
	if (!take(r, '"'))
		return false;
	*ret = r->at;
	*ret_n = mo_text_plain(r->at, (size_t)(r->end - r->at));
	r->at += *ret_n;
	return take(r, '"');
}

static bool word(struct reader *r, char ret[static WORD_MAX])
{
	const char *s;
	size_t n;

	if (!text(r, &s, &n) || n >= WORD_MAX)
		return false;
	memcpy(ret, s, n);
	ret[n] = '\0';
	return true;
}

static bool integer(struct reader *r, int64_t *ret)
{
	bool negative = take(r, '-');
	const char *begin = r->at;
	int64_t v = 0;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && r->at - begin < DIGITS_MAX)
		v = v * 10 + (*r->at++ - '0');
	/* a 0 stands alone: -0 and 007 are not for this to judge */
	if (r->at == begin || (*begin == '0' && (negative || r->at - begin > 1)))
		return false;
	*ret = negative ? -v : v;
	return true;
}

static bool real(struct reader *r, double *ret)
{
	char copy[WORD_MAX];
	size_t n = wire_number(r->at, (size_t)(r->end - r->at));

	if (n == 0 || n >= WORD_MAX || (n > 1 && memcmp(r->at, "-0", 2) == 0))
		return false;
	memcpy(copy, r->at, n);
	copy[n] = '\0';
	r->at += n;
	return mo_parse_double(copy, ret) >= 0 && isfinite(*ret);
}

static bool boolean(struct reader *r, bool *ret)
{
	*ret = take_word(r, "true");
	return *ret || take_word(r, "false");
}

static bool tri(struct reader *r, int8_t *ret)
{
	bool b;

	if (!boolean(r, &b))
		return false;
	*ret = b;
	return true;
}

/* Of \X; 0: it is none of those that stand for one byte. */
static char unescaped(char c)
{
	static const char written[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *at = c ? strchr(written, c) : NULL;

	return at ? meant[at - written] : '\0';
}

/* One character that is not plain. */
static bool special(struct reader *r, struct mo_buf *b)
{
	size_t left = (size_t)(r->end - r->at);
	char c = left > 1 && *r->at == '\\' ? unescaped(r->at[1]) : '\0';
	size_t n = left && (*r->at & 0x80) ? mo_utf8_next(r->at, left) : 0;

	mo_buf_add(b, c ? &c : r->at, c ? 1 : n);
	r->at += c ? 2 : n;
	return c || n;
}

/* A string with characters that are written in another way, or are no ASCII. */
static bool written_out(struct reader *r, struct mo_buf *b)
{
	if (!take(r, '"'))
		return false;
	for (;;) {
		size_t n = mo_text_plain(r->at, (size_t)(r->end - r->at));

		mo_buf_add(b, r->at, n);
		r->at += n;
		if (take(r, '"'))
			return true;
		if (!special(r, b))
			return false;
	}
}

static bool string(struct reader *r, size_t max, char **ret)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const char *begin = r->at, *s;
	size_t n;

	if (!text(r, &s, &n)) {
		r->at = begin;
		if (!written_out(r, &b))
			return false;
		s = b.data;
		n = b.len;
	}
	if (r->strict && n > (max ? max : WIRE_STRING_MAX))
		return false;
	*ret = mo_strndup(s, n);
	return true;
}

static bool enumeration(struct reader *r, const struct mo_field *f, int *ret)
{
	char name[WORD_MAX];

	return word(r, name) && (*ret = mo_enum_parse(f->names, f->n_names, name)) >= 0;
}

static bool id(struct reader *r, const struct mo_field *f, int64_t *ret)
{
	size_t n = strlen(f->names[0]);
	char name[WORD_MAX];

	return word(r, name) && mo_starts_with(name, f->names[0]) && name[n] == '-' &&
	       mo_parse_i64(name + n + 1, 0, INT64_MAX, ret) >= 0;
}

static bool timestamp(struct reader *r, int64_t *ret)
{
	char name[WORD_MAX];

	return word(r, name) && mo_time_parse(name, ret) >= 0;
}

static bool element(struct reader *r, const struct mo_field *f, void *obj)
{
	int64_t v = MO_NONE;
	char *s = NULL;

	if (f->kind == MO_VEC)
		return object(r, f->sub, mo_vec_append(f, obj));
	if (f->kind == MO_REALS) {
		double number = MO_NONE_F;

		if (!take_word(r, "null") && !real(r, &number))
			return false;
		mo_reals_add(AT(double *, obj, f), &COUNT(obj, f), number);
		return true;
	}
	if (f->kind == MO_INTS) {
		if ((r->strict || !take_word(r, "null")) && !integer(r, &v))
			return false;
		mo_ints_add(AT(int64_t *, obj, f), &COUNT(obj, f), v);
		return true;
	}
	if (!take_word(r, "null") && !string(r, 0, &s))
		return false;
	*(char **)mo_grow_raw(AT(void *, obj, f), &COUNT(obj, f), sizeof(char *)) = s;
	return true;
}

static bool list(struct reader *r, const struct mo_field *f, void *obj)
{
	size_t max = f->max ? f->max : WIRE_LIST_MAX;

	mo_assert(f->kind == MO_VEC || f->kind == MO_STRS || f->kind == MO_INTS ||
		  f->kind == MO_REALS);
	if (!take(r, '['))
		return false;
	if (take(r, ']'))
		return true;
	do {
		if (r->strict && (COUNT(obj, f) >= max || ++r->elements > WIRE_ELEMENTS_MAX))
			return false;
		if (!element(r, f, obj))
			return false;
	} while (take(r, ','));
	return take(r, ']');
}

static bool value(struct reader *r, const struct mo_field *f, void *obj)
{
	if (take_word(r, "null"))
		return true;
	switch (f->kind) {
	case MO_BOOL: return boolean(r, AT(bool, obj, f));
	case MO_TRI: return tri(r, AT(int8_t, obj, f));
	case MO_INT: return integer(r, AT(int64_t, obj, f));
	case MO_ID: return id(r, f, AT(int64_t, obj, f));
	case MO_TIME: return timestamp(r, AT(int64_t, obj, f));
	case MO_REAL: return real(r, AT(double, obj, f));
	case MO_STR: return string(r, f->max, AT(char *, obj, f));
	case MO_ENUM: return enumeration(r, f, AT(int, obj, f));
	case MO_STRUCT: return object(r, f->sub, AT(void, obj, f));
	case MO_OPT:
		*AT(void *, obj, f) = mo_desc_new(f->sub);
		return object(r, f->sub, *AT(void *, obj, f));
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: return list(r, f, obj);
	case MO_RAWJSON: return false;
	}
	return false;
}

/* Its number, n_fields: none. They mostly come in their order: from is the one behind the last. */
static size_t field_of(const struct mo_desc *d, const char *key, size_t n, size_t from)
{
	for (size_t k = 0; k < d->n_fields; k++) {
		size_t i = from + k < d->n_fields ? from + k : from + k - d->n_fields;
		const char *name = d->fields[i].name;

		if (strncmp(name, key, n) == 0 && name[n] == '\0')
			return i;
	}
	return d->n_fields;
}

static bool members(struct reader *r, const struct mo_desc *d, void *obj)
{
	bool seen[FIELDS_MAX] = { false };
	size_t n, i = 0;
	const char *key;

	do {
		if (!text(r, &key, &n) || !take(r, ':'))
			return false;
		i = field_of(d, key, n, i);
		if (i == d->n_fields || seen[i] || !value(r, &d->fields[i], obj))
			return false;
		seen[i++] = true;
	} while (take(r, ','));
	return take(r, '}');
}

static bool object(struct reader *r, const struct mo_desc *d, void *obj)
{
	bool good;

	if (d->n_fields > FIELDS_MAX || r->depth == DEPTH_MAX || !take(r, '{'))
		return false;
	r->depth++;
	good = take(r, '}') || members(r, d, obj);
	r->depth--;
	return good;
}

bool wire_direct(const struct mo_desc *d, const char *text, size_t n, bool strict, void *obj)
{
	struct reader r = { .at = text, .end = text + n, .strict = strict };

	return n > 0 && n <= WIRE_BYTES_MAX && object(&r, d, obj) && r.at == r.end;
}

bool wire_direct_next(const struct mo_desc *d, const char *text, size_t n, void *obj, size_t *ret_n)
{
	struct reader r = { .at = text, .end = text + n };

	if (!object(&r, d, obj))
		return false;
	*ret_n = (size_t)(r.at - text);
	return true;
}
