/* JSON tree -> described struct. Everything is decoded into a fresh object that replaces the
 * caller's only when all of it was good. Absent and null mean unknown. Strict input comes from
 * outside: unknown keys are refused, and lists, strings and the sum of all list elements are
 * limited before memory is taken for them. */
#include "lib/wire/decode.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/wire/direct.h"
#include "lib/wire/parse.h"

#define AT(type, obj, f) ((type *)((char *)(obj) + (f)->offset))
#define COUNT(obj, f) (*(size_t *)((char *)(obj) + (f)->count_offset))

/* Where we are, for messages: a chain on the stack from the innermost place outwards. */
/* name NULL: element [index] */
struct place {
	const struct place *outer;
	const char *name;
	size_t index;
};

struct decoder {
	bool strict;
	size_t elements;
	struct mo_error *err;
};

static void place_print(const struct place *p, struct mo_buf *b)
{
	if (!p)
		return;
	place_print(p->outer, b);
	if (p->name)
		mo_buf_printf(b, "%s%s", b->len ? "." : "", p->name);
	else
		mo_buf_printf(b, "[%zu]", p->index);
}

/* The error "PLACE: what". */
static int refuse(struct decoder *dec, const struct place *p, int code, const char *what)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	place_print(p, &b);
	return mo_error_set(dec->err, code, "%s: %s", b.len ? b.data : "JSON", what);
}

static int object(struct decoder *dec, const struct mo_desc *d, struct json_object *json,
		  const struct place *p, void *obj);

static int integer(struct decoder *dec, struct json_object *json, const struct place *p,
		   int64_t *ret)
{
	int64_t v;

	if (!json_object_is_type(json, json_type_int))
		return refuse(dec, p, -EINVAL, "expected an integer");
	v = json_object_get_int64(json);
	/* json-c clips: what is above INT64_MAX shows as unsigned, and the least one is our
	 * "unknown" */
	if (v == MO_NONE || (v == INT64_MAX && json_object_get_uint64(json) > INT64_MAX))
		return refuse(dec, p, -EINVAL, "the integer is out of range");
	*ret = v;
	return 0;
}

static int real(struct decoder *dec, struct json_object *json, const struct place *p, double *ret)
{
	static const struct {
		const char *text;
		double value;
	} words[] = { { "NaN", NAN }, { "Infinity", INFINITY }, { "-Infinity", -INFINITY } };
	double v;

	if (json_object_is_type(json, json_type_string)) {
		for (size_t i = 0; i < ELEMENTSOF(words); i++)
			if (mo_streq(json_object_get_string(json), words[i].text)) {
				*ret = words[i].value;
				return 0;
			}
	}
	if (!json_object_is_type(json, json_type_int) &&
	    !json_object_is_type(json, json_type_double))
		return refuse(dec, p, -EINVAL, "expected a number");
	v = json_object_get_double(json);
	if (!isfinite(v))
		return refuse(dec, p, -EINVAL, "the number is out of range");
	*ret = v;
	return 0;
}

static int string(struct decoder *dec, struct json_object *json, const struct place *p, size_t max,
		  char **ret)
{
	size_t n;

	if (!json_object_is_type(json, json_type_string))
		return refuse(dec, p, -EINVAL, "expected a string");
	n = (size_t)json_object_get_string_len(json);
	if (dec->strict && n > (max ? max : WIRE_STRING_MAX))
		return refuse(dec, p, -E2BIG, "the string is too long");
	*ret = mo_strndup(json_object_get_string(json), n);
	return 0;
}

static int boolean(struct decoder *dec, struct json_object *json, const struct place *p, bool *ret)
{
	if (!json_object_is_type(json, json_type_boolean))
		return refuse(dec, p, -EINVAL, "expected true or false");
	*ret = json_object_get_boolean(json);
	return 0;
}

static int enumeration(struct decoder *dec, const struct mo_field *f, struct json_object *json,
		       const struct place *p, int *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int v;

	mo_assert(f->kind == MO_ENUM && f->n_names > 0);
	if (!json_object_is_type(json, json_type_string))
		return refuse(dec, p, -EINVAL, "expected a string");
	v = mo_enum_parse(f->names, f->n_names, json_object_get_string(json));
	if (v < 0) {
		mo_buf_str(&b, "expected one of");
		for (size_t i = 0; i < f->n_names; i++)
			mo_buf_printf(&b, "%s %s", i ? "," : "", f->names[i]);
		return refuse(dec, p, -EINVAL, b.data);
	}
	*ret = v;
	return 0;
}

static int id(struct decoder *dec, const struct mo_field *f, struct json_object *json,
	      const struct place *p, int64_t *ret)
{
	_cleanup_(mo_freep) char *expect = mo_printf("expected an id such as %s-7", f->names[0]);
	const char *s =
		json_object_is_type(json, json_type_string) ? json_object_get_string(json) : "";
	size_t n = strlen(f->names[0]);

	mo_assert(f->kind == MO_ID && f->names);
	if (!mo_starts_with(s, f->names[0]) || s[n] != '-' ||
	    mo_parse_i64(s + n + 1, 0, INT64_MAX, ret) < 0)
		return refuse(dec, p, -EINVAL, expect);
	return 0;
}

static int timestamp(struct decoder *dec, struct json_object *json, const struct place *p,
		     int64_t *ret)
{
	if (!json_object_is_type(json, json_type_string) ||
	    mo_time_parse(json_object_get_string(json), ret) < 0)
		return refuse(dec, p, -EINVAL, "expected a time such as 2026-11-21T08:30:50.123Z");
	return 0;
}

/* An unknown element of a list of integers: null, or the number that versions before wrote for
 * it. */
static bool absent(struct json_object *json)
{
	return !json ||
	       (json_object_is_type(json, json_type_int) && json_object_get_int64(json) == MO_NONE);
}

static int element(struct decoder *dec, const struct mo_field *f, struct json_object *json,
		   const struct place *p, void *obj)
{
	char *s = NULL;
	double number = MO_NONE_F;
	int64_t v = MO_NONE;
	int r;

	if (f->kind == MO_VEC)
		return object(dec, f->sub, json, p, mo_vec_append(f, obj));
	if (f->kind == MO_REALS) {
		r = json ? real(dec, json, p, &number) : 0;
		if (r == 0)
			mo_reals_add(AT(double *, obj, f), &COUNT(obj, f), number);
		return r;
	}
	if (f->kind == MO_INTS) {
		r = !dec->strict && absent(json) ? 0 : integer(dec, json, p, &v);
		if (r == 0)
			mo_ints_add(AT(int64_t *, obj, f), &COUNT(obj, f), v);
		return r;
	}
	r = json ? string(dec, json, p, 0, &s) : 0; /* a NULL string is allowed in a list */
	if (r == 0)
		*(char **)mo_grow_raw(AT(void *, obj, f), &COUNT(obj, f), sizeof(char *)) = s;
	return r;
}

static int list(struct decoder *dec, const struct mo_field *f, struct json_object *json,
		const struct place *p, void *obj)
{
	size_t n;
	int r;

	mo_assert(f->kind == MO_VEC || f->kind == MO_STRS || f->kind == MO_INTS ||
		  f->kind == MO_REALS);
	if (!json_object_is_type(json, json_type_array))
		return refuse(dec, p, -EINVAL, "expected a list");
	n = json_object_array_length(json);
	dec->elements += n;
	if (dec->strict &&
	    (n > (f->max ? f->max : WIRE_LIST_MAX) || dec->elements > WIRE_ELEMENTS_MAX))
		return refuse(dec, p, -E2BIG, "too many elements");
	for (size_t i = 0; i < n; i++) {
		r = element(dec, f, json_object_array_get_idx(json, i),
			    &(struct place){ p, NULL, i }, obj);
		if (r < 0)
			return r;
	}
	return 0;
}

static int value(struct decoder *dec, const struct mo_field *f, struct json_object *json,
		 const struct place *p, void *obj)
{
	bool b = false;
	int r;

	switch (f->kind) {
	case MO_BOOL: return boolean(dec, json, p, AT(bool, obj, f));
	case MO_TRI:
		r = boolean(dec, json, p, &b);
		if (r == 0)
			*AT(int8_t, obj, f) = b;
		return r;
	case MO_INT: return integer(dec, json, p, AT(int64_t, obj, f));
	case MO_ID: return id(dec, f, json, p, AT(int64_t, obj, f));
	case MO_TIME: return timestamp(dec, json, p, AT(int64_t, obj, f));
	case MO_REAL: return real(dec, json, p, AT(double, obj, f));
	case MO_STR: return string(dec, json, p, f->max, AT(char *, obj, f));
	case MO_ENUM: return enumeration(dec, f, json, p, AT(int, obj, f));
	case MO_STRUCT: return object(dec, f->sub, json, p, AT(void, obj, f));
	case MO_OPT:
		*AT(void *, obj, f) = mo_desc_new(f->sub);
		return object(dec, f->sub, json, p, *AT(void *, obj, f));
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: return list(dec, f, json, p, obj);
	case MO_RAWJSON:
		*AT(char *, obj, f) = mo_strdup(
			json_object_to_json_string_ext(json,
						       JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE));
		return 0;
	}
	return -EINVAL;
}

/* The first key that the description does not know. */
static int refuse_unknown(struct decoder *dec, const struct mo_desc *d, struct json_object *json,
			  const struct place *p)
{
	struct json_object_iterator end = json_object_iter_end(json);

	for (struct json_object_iterator it = json_object_iter_begin(json);
	     !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *key = json_object_iter_peek_name(&it);
		bool known = false;

		for (size_t i = 0; i < d->n_fields && !known; i++)
			known = mo_streq(d->fields[i].name, key);
		if (!known)
			return refuse(dec, &(struct place){ p, key, 0 }, -EINVAL, "unknown key");
	}
	return 0;
}

static int object(struct decoder *dec, const struct mo_desc *d, struct json_object *json,
		  const struct place *p, void *obj)
{
	struct json_object *member;
	int found = 0, n, r;

	if (!json_object_is_type(json, json_type_object))
		return refuse(dec, p, -EINVAL, "expected an object");
	n = json_object_object_length(json);
	for (size_t i = 0; i < d->n_fields && found < n; i++) {
		const struct mo_field *f = &d->fields[i];

		if (!json_object_object_get_ex(json, f->name, &member))
			continue;
		found++;
		if (!member)
			continue;
		r = value(dec, f, member, &(struct place){ p, f->name, 0 }, obj);
		if (r < 0)
			return r;
	}
	if (dec->strict && found < n)
		return refuse_unknown(dec, d, json, p);
	return 0;
}

/* obj becomes what fresh is, which goes. */
static void become(const struct mo_desc *d, void *obj, void *fresh)
{
	mo_assert(obj);
	mo_desc_done(d, obj);
	memcpy(obj, fresh, d->size);
	free(fresh);
}

int wire_from_json(const struct mo_desc *d, struct json_object *json, bool strict, void *obj,
		   struct mo_error *err)
{
	struct decoder dec = { .strict = strict, .err = err };
	void *fresh = mo_desc_new(d);
	int r = object(&dec, d, json, NULL, fresh);

	if (r < 0)
		mo_desc_free(d, fresh);
	else
		become(d, obj, fresh);
	return r;
}

int wire_decode(const struct mo_desc *d, const char *text, size_t n, bool strict, void *obj,
		struct mo_error *err)
{
	struct json_object *json = NULL;
	void *fresh = mo_desc_new(d);

	mo_assert(text || n == 0);
	if (wire_direct(d, text, n, strict, fresh)) {
		become(d, obj, fresh);
		return 0;
	}
	mo_desc_free(d, fresh);
	int r = wire_parse(text, n, &json, err);
	if (r < 0)
		return r;
	r = wire_from_json(d, json, strict, obj, err);
	json_object_put(json);
	return r;
}

/* ---- a text of our own that is too large for a tree ---- */

/* Where the value ends that begins at text[at]: at the comma or bracket behind it; n when it
 * does not. */
static size_t value_end(const char *text, size_t at, size_t n)
{
	size_t depth = 0;
	bool in_string = false;

	for (; at < n; at++) {
		char c = text[at];

		if (in_string) {
			at += c == '\\';
			in_string = c != '"';
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
			return at;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return n;
}

/* One element of a list of structs, into one that is initialised; *ret_end is behind it. Where it
 * is not plain, its own tree is all that stands in memory. */
static int piece(const struct mo_desc *d, const char *text, size_t at, size_t n, void *element,
		 size_t *ret_end)
{
	struct decoder dec = { 0 };
	struct json_object *json = NULL;
	size_t length;

	if (wire_direct_next(d, text + at, n - at, element, &length)) {
		*ret_end = at + length;
		return 0;
	}
	mo_desc_done(d, element);
	*ret_end = value_end(text, at, n);
	int r = wire_parse(text + at, *ret_end - at, &json, NULL);
	if (r == 0)
		r = object(&dec, d, json, NULL, element);
	json_object_put(json);
	return r;
}

/* The list that begins at text[at]; *ret_end is behind it. */
static int list_in_pieces(const struct mo_field *f, const char *text, size_t at, size_t n,
			  void *obj, size_t *ret_end)
{
	bool more = ++at < n && text[at] != ']';
	int r = 0;

	while (more && r == 0) {
		r = piece(f->sub, text, at, n, mo_vec_append(f, obj), &at);
		if (r == 0 && (at == n || (text[at] != ',' && text[at] != ']')))
			r = -EINVAL;
		more = r == 0 && text[at] == ',';
		at += more;
	}
	*ret_end = at + 1;
	return r;
}

static const struct mo_field *vec_of(const struct mo_desc *d, const char *name, size_t n)
{
	for (size_t i = 0; i < d->n_fields; i++)
		if (d->fields[i].kind == MO_VEC && strlen(d->fields[i].name) == n &&
		    memcmp(d->fields[i].name, name, n) == 0)
			return &d->fields[i];
	return NULL;
}

/* The member at text[at], `"name":value`: a list of structs goes into obj, and is null among the
 * others. */
static int member_in_pieces(const struct mo_desc *d, const char *text, size_t at, size_t n,
			    void *obj, struct mo_buf *others, size_t *ret_end)
{
	const char *name = text + at + 1,
		   *quote = at + 1 < n && text[at] == '"' ? memchr(name, '"', n - at - 1) : NULL;
	size_t value = quote ? (size_t)(quote - text) + 2 : n;

	if (value >= n || quote[1] != ':')
		return -EINVAL;
	const struct mo_field *f = vec_of(d, name, (size_t)(quote - name));
	bool is_list = f && text[value] == '[';
	int r = is_list ? list_in_pieces(f, text, value, n, obj, ret_end) : 0;

	if (!is_list)
		*ret_end = value_end(text, value, n);
	mo_buf_str(others, others->len > 1 ? "," : "");
	mo_buf_add(others, text + at, (is_list ? value : *ret_end) - at);
	mo_buf_str(others, is_list ? "null" : "");
	return r;
}

static int in_pieces(const struct mo_desc *d, const char *text, size_t n, void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf others = { 0 };
	struct decoder dec = { 0 };
	struct json_object *json = NULL;
	size_t at = 0;
	int r = n > 2 && text[0] == '{' && text[1] == '"' ? 0 : -EINVAL;

	mo_buf_str(&others, "{");
	do {
		r = r < 0 ? r : member_in_pieces(d, text, at + 1, n, obj, &others, &at);
	} while (r == 0 && at < n && text[at] == ',');
	if (r < 0 || at + 1 != n || text[at] != '}')
		return -EINVAL;
	mo_buf_str(&others, "}");
	r = wire_parse(others.data, others.len, &json, NULL);
	if (r == 0)
		r = object(&dec, d, json, NULL, obj);
	json_object_put(json);
	return r;
}

int wire_decode_large(const struct mo_desc *d, const char *text, size_t n, void *obj,
		      struct mo_error *err)
{
	void *fresh = mo_desc_new(d);

	if (in_pieces(d, text, n, fresh) < 0) {
		mo_desc_free(d, fresh);
		/* which says what is wrong with it, and where */
		return wire_decode(d, text, n, false, obj, err);
	}
	become(d, obj, fresh);
	return 0;
}
