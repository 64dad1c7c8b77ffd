/* What of a message from outside may become part of a record: numbers that arithmetic can be
 * done with, times that have a form outside, texts of bounded length. The bounds stand in the
 * descriptions. And how much text there is. Pure. */
#include "lib/base/desc_fit.h"

#include "lib/base/desc.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"

#define AT(type, obj, f) ((type *)((char *)(obj) + (f)->offset))
#define COUNT(obj, f) (*(size_t *)((char *)(obj) + (f)->count_offset))

/* Where we are, a chain on the stack from the innermost place outwards; name NULL: element [index].
 * Most is fit, and no path is ever written. */
struct place {
	const struct place *outer;
	const char *name;
	size_t index;
};

/* mend: change it; else path gets the first place, and why holds what is wrong there. */
struct fit {
	bool mend;
	struct mo_buf path;
	const char *why;
};

static bool object(struct fit *fit, const struct mo_desc *d, const struct place *p, void *obj);

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

/* true: it was made fit. */
static bool unfit(struct fit *fit, const struct place *p, const char *why)
{
	if (!fit->mend)
		place_print(p, &fit->path);
	fit->why = why;
	return fit->mend;
}

static bool bounded(const struct mo_field *f)
{
	return f->least != 0 || f->most != 0;
}

/* true: it is fit, or was made so. */
static bool number(struct fit *fit, const struct mo_field *f, const struct place *p, int64_t *v)
{
	int64_t least = f->kind == MO_TIME ? 0 : -MO_FIT_INT,
		most = f->kind == MO_TIME ? MO_TIME_MOST : MO_FIT_INT;
	bool none = *v == MO_NONE;

	mo_assert(f->least <= f->most);
	if (bounded(f)) {
		least = f->least;
		most = f->most;
	}
	if (none ? !f->needed || fit->mend : *v >= least && *v <= most)
		return true;
	if (fit->mend)
		*v = MO_NONE;
	return unfit(fit, p, none ? "is missing" : "is out of range");
}

/* Loss and its kind may be anything, NaN too; a real with bounds is a number within them. */
static bool real(struct fit *fit, const struct mo_field *f, const struct place *p, double *v)
{
	mo_assert(f->kind == MO_REAL && f->least <= f->most);
	if (*v == MO_NONE_F || !bounded(f) || (*v >= (double)f->least && *v <= (double)f->most))
		return true;
	if (fit->mend)
		*v = MO_NONE_F;
	return unfit(fit, p, "is out of range");
}

static bool text(struct fit *fit, const struct mo_field *f, const struct place *p, char *s)
{
	size_t most = (size_t)(f->most ? f->most : MO_FIT_BYTES);

	if (!s || strnlen(s, most + 1) <= most)
		return true;
	if (fit->mend)
		s[mo_utf8_cut(s, most)] = 0;
	return unfit(fit, p, "is too long");
}

/* Whoever reads a list of texts counts on each. */
static bool line(struct fit *fit, const struct mo_field *f, const struct place *p, char **s)
{
	if (*s)
		return text(fit, f, p, *s);
	if (fit->mend)
		*s = mo_strdup("");
	return unfit(fit, p, "is missing");
}

static bool element(struct fit *fit, const struct mo_field *f, const struct place *p, void *obj,
		    size_t i)
{
	mo_assert(i < *(const size_t *)((const char *)obj + f->count_offset));
	if (f->kind == MO_VEC)
		return object(fit, f->sub, p, mo_vec_element(f, obj, i));
	if (f->kind == MO_STRS)
		return line(fit, f, p, &(*AT(char **, obj, f))[i]);
	if (f->kind == MO_REALS)
		return real(fit, f, p, &(*AT(double *, obj, f))[i]);
	return number(fit, f, p, &(*AT(int64_t *, obj, f))[i]);
}

static bool list(struct fit *fit, const struct mo_field *f, const struct place *p, void *obj)
{
	for (size_t i = 0; i < COUNT(obj, f); i++)
		if (!element(fit, f, &(struct place){ p, NULL, i }, obj, i))
			return false;
	return true;
}

static bool field(struct fit *fit, const struct mo_field *f, const struct place *p, void *obj)
{
	switch (f->kind) {
	case MO_INT:
	case MO_ID:
	case MO_TIME: return number(fit, f, p, AT(int64_t, obj, f));
	case MO_STR:
	case MO_RAWJSON: return text(fit, f, p, *AT(char *, obj, f));
	case MO_STRUCT: return object(fit, f->sub, p, AT(void, obj, f));
	case MO_OPT: return !*AT(void *, obj, f) || object(fit, f->sub, p, *AT(void *, obj, f));
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: return list(fit, f, p, obj);
	case MO_REAL: return real(fit, f, p, AT(double, obj, f));
	case MO_BOOL:
	case MO_TRI:
	case MO_ENUM: break;
	}
	return true;
}

static bool object(struct fit *fit, const struct mo_desc *d, const struct place *p, void *obj)
{
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];

		if (!field(fit, f, &(struct place){ p, f->name, 0 }, obj))
			return false;
	}
	return true;
}

void mo_desc_fit(const struct mo_desc *d, void *obj)
{
	struct fit fit = { .mend = true };

	(void)object(&fit, d, NULL, obj);
}

char *mo_desc_unfit(const struct mo_desc *d, const void *obj)
{
	struct fit fit = { 0 };
	char *place = NULL;

	/* nothing is changed without mend */
	if (!object(&fit, d, NULL, (void *)obj))
		place = mo_printf("%s: %s", fit.path.data, fit.why);
	mo_buf_done(&fit.path);
	return place;
}

static size_t text_bytes(const char *s)
{
	size_t n = s ? strlen(s) : 0, bytes = n;

	for (size_t i = mo_text_plain(s, n); i < n; i += 1 + mo_text_plain(s + i + 1, n - i - 1))
		if (s[i] == '"' || s[i] == '\\')
			bytes++;
		else if ((unsigned char)s[i] < 0x20)
			bytes += strlen("\\u00") + 1;
	return bytes;
}

static size_t field_text_bytes(const struct mo_field *f, const void *obj)
{
	const void *at = (const char *)obj + f->offset;
	size_t n = 0,
	       count = f->count_offset ? *(const size_t *)((const char *)obj + f->count_offset) : 0;

	if (f->kind == MO_STR || f->kind == MO_RAWJSON)
		return text_bytes(*(char *const *)at);
	if (f->kind == MO_STRUCT)
		return mo_desc_text_bytes(f->sub, at);
	if (f->kind == MO_OPT)
		return *(void *const *)at ? mo_desc_text_bytes(f->sub, *(void *const *)at) : 0;
	for (size_t i = 0; f->kind == MO_VEC && i < count; i++)
		n += mo_desc_text_bytes(f->sub, mo_vec_element(f, obj, i));
	for (size_t i = 0; f->kind == MO_STRS && i < count; i++)
		n += text_bytes((*(char **const *)at)[i]);
	return n;
}

size_t mo_desc_text_bytes(const struct mo_desc *d, const void *obj)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_fields; i++)
		n += field_text_bytes(&d->fields[i], obj);
	return n;
}
