/* Walks described structs (desc.h): init, done, copy, compare, and the arrays they hold.
 *
 * Called by everybody who owns a struct of lib/model or of a core; the same descriptions are
 * walked by lib/wire for JSON and by desc_fit.c for limits. Every function is one switch over enum
 * mo_kind, so that a new kind is found missing by the compiler, and recursion goes as deep as
 * descriptions nest: descriptions do not contain themselves.
 *
 * Ownership: a described struct owns all that its fields point to. mo_desc_done() leaves it as
 * after mo_desc_init(), so done twice is fine; mo_desc_copy() is deep and frees what dst had.
 * Arrays have no capacity of their own: they grow by MO_GROW's rule (util.h), and what is copied
 * is allocated so that it may grow on.
 *
 * What never happens: I/O, a failure (out of memory aborts), a field that is skipped because its
 * value is odd. */
#include "lib/base/desc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"

#define AT(type, obj, off) ((type *)((char *)(obj) + (off)))
#define AT_CONST(type, obj, off) ((const type *)((const char *)(obj) + (off)))
#define NUMBER sizeof(int64_t) /* an element of INTS, and of REALS */
#define COUNT(obj, f) (*AT(size_t, obj, (f)->count_offset))
#define COUNT_CONST(obj, f) (*AT_CONST(size_t, obj, (f)->count_offset))

/* Storage for n elements that mo_grow_raw may go on with: a power of two. */
static void *array_new(size_t n, size_t size)
{
	size_t cap = 1;

	mo_assert(n > 0 && size > 0);
	while (cap < n)
		cap *= 2;
	return mo_alloc_array(cap, size);
}

static void fields_init(const struct mo_desc *d, void *obj)
{
	mo_assert(obj && (d->fields || d->n_fields == 0));
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];

		switch (f->kind) {
		case MO_TRI: *AT(int8_t, obj, f->offset) = -1; break;
		case MO_INT:
		case MO_ID:
		case MO_TIME: *AT(int64_t, obj, f->offset) = MO_NONE; break;
		case MO_REAL: *AT(double, obj, f->offset) = MO_NONE_F; break;
		case MO_ENUM: *AT(int, obj, f->offset) = -1; break;
		case MO_STRUCT: fields_init(f->sub, AT(void, obj, f->offset)); break;
		/* zero */
		case MO_BOOL:
		case MO_STR:
		case MO_OPT:
		case MO_VEC:
		case MO_STRS:
		case MO_INTS:
		case MO_REALS:
		case MO_RAWJSON: break;
		}
	}
}

const char *mo_field_doc(const struct mo_field *f)
{
	return f->documented ? f->name + strlen(f->name) + 1 : "";
}

void mo_desc_init(const struct mo_desc *d, void *obj)
{
	assert(d->size > 0);
	memset(obj, 0, d->size);
	fields_init(d, obj);
}

static void fields_done(const struct mo_desc *d, void *obj);

/* Frees the elements and the array; the caller sets both members. */
static void elements_done(const struct mo_desc *d, void *array, size_t n)
{
	assert(array || n == 0);
	for (size_t i = 0; i < n; i++)
		fields_done(d, (char *)array + i * d->size);
	free(array);
}

void mo_field_done(const struct mo_field *f, void *obj)
{
	switch (f->kind) {
	case MO_STR:
	case MO_RAWJSON: free(*AT(char *, obj, f->offset)); break;
	case MO_STRUCT: fields_done(f->sub, AT(void, obj, f->offset)); break;
	case MO_OPT: mo_desc_free(f->sub, *AT(void *, obj, f->offset)); break;
	case MO_VEC:
		if (f->apart)
			mo_apart_clear(f->sub, AT(void **, obj, f->offset), &COUNT(obj, f));
		else
			elements_done(f->sub, *AT(void *, obj, f->offset), COUNT(obj, f));
		break;
	case MO_STRS:
		for (size_t i = 0; i < COUNT(obj, f); i++)
			free((*AT(char **, obj, f->offset))[i]);
		free(*AT(char **, obj, f->offset));
		break;
	case MO_INTS:
	case MO_REALS: free(*AT(void *, obj, f->offset)); break;
	case MO_BOOL:
	case MO_TRI:
	case MO_INT:
	case MO_ID:
	case MO_TIME:
	case MO_REAL:
	case MO_ENUM: break;
	}
}

static void fields_done(const struct mo_desc *d, void *obj)
{
	mo_assert(obj && d->size > 0);
	if (d->before_done)
		d->before_done(obj);
	for (size_t i = 0; i < d->n_fields; i++)
		mo_field_done(&d->fields[i], obj);
}

void mo_desc_done(const struct mo_desc *d, void *obj)
{
	assert(obj);
	fields_done(d, obj);
	mo_desc_init(d, obj);
}

void *mo_vec_element(const struct mo_field *f, const void *obj, size_t i)
{
	mo_assert(f->kind == MO_VEC && i < COUNT_CONST(obj, f));
	return f->apart ? (void *)(*AT_CONST(void **, obj, f->offset))[i]
			: (char *)*AT_CONST(char *, obj, f->offset) + i * f->sub->size;
}

void *mo_vec_append(const struct mo_field *f, void *obj)
{
	mo_assert(f->kind == MO_VEC);
	if (f->apart)
		return mo_apart_insert(f->sub, AT(void **, obj, f->offset), &COUNT(obj, f),
				       COUNT(obj, f));
	return mo_vec_add(f->sub, AT(void *, obj, f->offset), &COUNT(obj, f));
}

static void fields_copy(const struct mo_desc *d, void *dst, const void *src);

void mo_field_copy(const struct mo_field *f, void *dst, const void *src)
{
	size_t n;

	switch (f->kind) {
	case MO_BOOL: *AT(bool, dst, f->offset) = *AT_CONST(bool, src, f->offset); break;
	case MO_TRI: *AT(int8_t, dst, f->offset) = *AT_CONST(int8_t, src, f->offset); break;
	case MO_INT:
	case MO_ID:
	case MO_TIME: *AT(int64_t, dst, f->offset) = *AT_CONST(int64_t, src, f->offset); break;
	case MO_REAL: *AT(double, dst, f->offset) = *AT_CONST(double, src, f->offset); break;
	case MO_ENUM: *AT(int, dst, f->offset) = *AT_CONST(int, src, f->offset); break;
	case MO_STR:
	case MO_RAWJSON:
		*AT(char *, dst, f->offset) = mo_strdup(*AT_CONST(char *, src, f->offset));
		break;
	case MO_STRUCT:
		fields_copy(f->sub, AT(void, dst, f->offset), AT_CONST(void, src, f->offset));
		break;
	case MO_OPT:
		*AT(void *, dst, f->offset) =
			mo_desc_dup(f->sub, *AT_CONST(void *, src, f->offset));
		break;
	case MO_VEC:
		n = COUNT(dst, f) = COUNT_CONST(src, f);
		*AT(void *, dst, f->offset) =
			n ? array_new(n, f->apart ? sizeof(void *) : f->sub->size) : NULL;
		for (size_t i = 0; i < n; i++) {
			if (f->apart)
				(*AT(void **, dst, f->offset))[i] = mo_alloc(f->sub->size);
			fields_copy(f->sub, mo_vec_element(f, dst, i), mo_vec_element(f, src, i));
		}
		break;
	case MO_STRS:
		n = COUNT(dst, f) = COUNT_CONST(src, f);
		*AT(char **, dst, f->offset) = n ? array_new(n, sizeof(char *)) : NULL;
		for (size_t i = 0; i < n; i++)
			(*AT(char **, dst, f->offset))[i] =
				mo_strdup((*AT_CONST(char **, src, f->offset))[i]);
		break;
	case MO_INTS:
	case MO_REALS:
		n = COUNT(dst, f) = COUNT_CONST(src, f);
		*AT(void *, dst, f->offset) = n ? array_new(n, NUMBER) : NULL;
		if (n)
			memcpy(*AT(void *, dst, f->offset), *AT_CONST(void *, src, f->offset),
			       n * NUMBER);
		break;
	}
}

static void fields_copy(const struct mo_desc *d, void *dst, const void *src)
{
	mo_assert(dst != src); /* it would free what it reads */
	for (size_t i = 0; i < d->n_fields; i++)
		mo_field_copy(&d->fields[i], dst, src);
}

void mo_desc_copy(const struct mo_desc *d, void *dst, const void *src)
{
	assert(dst && src);
	if (dst == src)
		return;
	mo_desc_done(d, dst);
	fields_copy(d, dst, src);
}

static bool diff(const struct mo_desc *d, const void *a, const void *b, struct mo_buf *path);

static bool reals_differ(double x, double y)
{
	return !(x == y || (isnan(x) && isnan(y)));
}

/* true when they differ; path (may be NULL) then ends with where. */
static bool diff_list(const struct mo_field *f, const void *a, const void *b, struct mo_buf *path)
{
	size_t na = COUNT_CONST(a, f), nb = COUNT_CONST(b, f);

	mo_assert(f->kind == MO_VEC || f->kind == MO_STRS || f->kind == MO_INTS ||
		  f->kind == MO_REALS);
	for (size_t i = 0; i < na && i < nb; i++) {
		size_t mark = path ? path->len : 0;
		bool differs;

		if (path)
			mo_buf_printf(path, "[%zu]", i);
		if (f->kind == MO_VEC)
			differs = diff(f->sub, mo_vec_element(f, a, i), mo_vec_element(f, b, i),
				       path);
		else if (f->kind == MO_STRS)
			differs = !mo_streq((*AT_CONST(char **, a, f->offset))[i],
					    (*AT_CONST(char **, b, f->offset))[i]);
		else if (f->kind == MO_REALS)
			differs = reals_differ((*AT_CONST(double *, a, f->offset))[i],
					       (*AT_CONST(double *, b, f->offset))[i]);
		else
			differs = (*AT_CONST(int64_t *, a, f->offset))[i] !=
				  (*AT_CONST(int64_t *, b, f->offset))[i];
		if (differs)
			return true;
		if (path)
			path->len = mark;
	}
	if (na != nb && path)
		mo_buf_printf(path, "[%zu]", MO_MIN(na, nb));
	return na != nb;
}

static bool diff_field(const struct mo_field *f, const void *a, const void *b, struct mo_buf *path)
{
	const void *pa, *pb;

	switch (f->kind) {
	case MO_BOOL: return *AT_CONST(bool, a, f->offset) != *AT_CONST(bool, b, f->offset);
	case MO_TRI: return *AT_CONST(int8_t, a, f->offset) != *AT_CONST(int8_t, b, f->offset);
	case MO_INT:
	case MO_ID:
	case MO_TIME: return *AT_CONST(int64_t, a, f->offset) != *AT_CONST(int64_t, b, f->offset);
	case MO_ENUM: return *AT_CONST(int, a, f->offset) != *AT_CONST(int, b, f->offset);
	case MO_REAL:
		return reals_differ(*AT_CONST(double, a, f->offset),
				    *AT_CONST(double, b, f->offset));
	case MO_STR:
	case MO_RAWJSON:
		return !mo_streq(*AT_CONST(char *, a, f->offset), *AT_CONST(char *, b, f->offset));
	case MO_STRUCT:
		return diff(f->sub, AT_CONST(void, a, f->offset), AT_CONST(void, b, f->offset),
			    path);
	case MO_OPT:
		pa = *AT_CONST(void *, a, f->offset);
		pb = *AT_CONST(void *, b, f->offset);
		return pa && pb ? diff(f->sub, pa, pb, path) : pa != pb;
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: return diff_list(f, a, b, path);
	}
	assert(!"unknown kind");
	return true;
}

static bool diff(const struct mo_desc *d, const void *a, const void *b, struct mo_buf *path)
{
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];
		size_t mark = path ? path->len : 0;

		if (path)
			mo_buf_printf(path, "%s%s", path->len ? "." : "", f->name);
		if (diff_field(f, a, b, path))
			return true;
		if (path)
			path->len = mark;
	}
	return false;
}

bool mo_field_equal(const struct mo_field *f, const void *a, const void *b)
{
	return !diff_field(f, a, b, NULL);
}

bool mo_desc_equal(const struct mo_desc *d, const void *a, const void *b)
{
	return !diff(d, a, b, NULL);
}

char *mo_desc_diff(const struct mo_desc *d, const void *a, const void *b)
{
	struct mo_buf path = { 0 };

	if (diff(d, a, b, &path))
		return mo_buf_take(&path);
	mo_buf_done(&path);
	return NULL;
}

void *mo_desc_new(const struct mo_desc *d)
{
	mo_assert(d->size > 0);
	void *obj = mo_alloc(d->size);

	mo_desc_init(d, obj);
	return obj;
}

void *mo_desc_dup(const struct mo_desc *d, const void *src)
{
	void *obj;

	if (!src)
		return NULL;
	obj = mo_alloc(d->size);
	fields_copy(d, obj, src);
	return obj;
}

void mo_desc_free(const struct mo_desc *d, void *obj)
{
	if (!obj)
		return;
	fields_done(d, obj);
	free(obj);
}

void *mo_vec_add(const struct mo_desc *d, void **array, size_t *n)
{
	assert(d->size > 0);
	void *element = mo_grow_raw(array, n, d->size);

	mo_desc_init(d, element);
	return element;
}

void mo_vec_remove(const struct mo_desc *d, void *array, size_t *n, size_t index)
{
	char *element = (char *)array + index * d->size;

	assert(index < *n);
	mo_desc_done(d, element);
	mo_assert(array && d->size > 0);
	memmove(element, element + d->size, (*n - index - 1) * d->size);
	*n -= 1;
}

void mo_vec_cut(const struct mo_desc *d, void *array, size_t *n, size_t most)
{
	while (*n > most)
		mo_vec_remove(d, array, n, *n - 1);
	mo_assert(*n <= most);
}

void mo_vec_clear(const struct mo_desc *d, void **array, size_t *n)
{
	mo_assert(*array || *n == 0);
	elements_done(d, *array, *n);
	*array = NULL;
	*n = 0;
}

void *mo_apart_insert(const struct mo_desc *d, void ***array, size_t *n, size_t at)
{
	void *element = mo_desc_new(d), **slots;

	assert(at <= *n);
	mo_grow_raw((void **)array, n, sizeof(void *));
	slots = *array;
	memmove(slots + at + 1, slots + at, (*n - at - 1) * sizeof(*slots));
	return slots[at] = element;
}

void *mo_apart_take(void *array, size_t *n, size_t index)
{
	void **slots = array, *element;

	assert(index < *n);
	element = slots[index];
	memmove(slots + index, slots + index + 1, (*n - index - 1) * sizeof(*slots));
	*n -= 1;
	return element;
}

void mo_apart_clear(const struct mo_desc *d, void ***array, size_t *n)
{
	assert(*array || *n == 0);
	for (size_t i = 0; i < *n; i++)
		mo_desc_free(d, (*array)[i]);
	free(*array);
	*array = NULL;
	*n = 0;
}

void mo_strs_add(char ***array, size_t *n, const char *s)
{
	char *copy = mo_strdup(s);

	assert(array && n);
	*(char **)mo_grow_raw((void **)array, n, sizeof(char *)) = copy;
}

void mo_strs_printf(char ***array, size_t *n, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	int length = vsnprintf(text, sizeof(text), fmt, ap);

	va_end(ap);
	assert(length >= 0);
	if (length >= (int)sizeof(text))
		text[mo_utf8_cut(text, sizeof(text) - 4)] = 0;
	mo_strs_add(array, n, text);
}

void mo_strs_clear(char ***array, size_t *n)
{
	assert(*array || *n == 0);
	for (size_t i = 0; i < *n; i++)
		free((*array)[i]);
	free(*array);
	*array = NULL;
	*n = 0;
}

void mo_ints_add(int64_t **array, size_t *n, int64_t v)
{
	*(int64_t *)mo_grow_raw((void **)array, n, sizeof(int64_t)) = v;
}

void mo_reals_add(double **array, size_t *n, double v)
{
	*(double *)mo_grow_raw((void **)array, n, sizeof(double)) = v;
}

const char *mo_enum_name(const char *const *names, size_t n, int value)
{
	mo_assert(names || n == 0);
	return value >= 0 && (size_t)value < n && names[value] ? names[value] : "?";
}

int mo_enum_parse(const char *const *names, size_t n, const char *s)
{
	mo_assert(names || n == 0);
	for (size_t i = 0; s && i < n; i++)
		if (names[i] && strcmp(names[i], s) == 0)
			return (int)i;
	return -1;
}
