/* See desc_lend.h. One walk, whose three ends differ in what becomes of a value that both hold. */
#include "lib/base/desc_lend.h"

#include <string.h>

#include "lib/base/assert.h"

enum end { LEND, OWN, RETURN };

static void walk(const struct mo_desc *d, void *mine, const void *theirs, enum end end);

/* Of a field that refers to its value. */
static void **value(const struct mo_field *f, const void *obj)
{
	return (void **)((char *)(uintptr_t)obj + f->offset);
}

/* Of a list; NULL: the field is none. */
static size_t *count(const struct mo_field *f, const void *obj)
{
	bool list = f->kind == MO_VEC || f->kind == MO_STRS || f->kind == MO_INTS ||
		    f->kind == MO_REALS;

	return list ? (size_t *)((char *)(uintptr_t)obj + f->count_offset) : NULL;
}

static void word(char **mine, char *theirs, enum end end)
{
	bool lent = *mine && *mine == theirs;

	if (end == LEND && !lent && *mine && mo_streq(*mine, theirs)) {
		free(*mine);
		*mine = theirs;
	} else if (end != LEND && lent) {
		*mine = end == OWN ? mo_strdup(theirs) : NULL;
	}
}

/* What is in a value that differs. */
static void inside(const struct mo_field *f, void *mine, const void *theirs, enum end end)
{
	size_t *n = count(f, mine), both = n ? MO_MIN(*n, *count(f, theirs)) : 0;

	if (f->kind == MO_OPT && *value(f, mine) && *value(f, theirs))
		walk(f->sub, *value(f, mine), *value(f, theirs), end);
	for (size_t i = 0; f->kind == MO_STRS && i < both; i++)
		word(&((char **)*value(f, mine))[i], ((char **)*value(f, theirs))[i], end);
	for (size_t i = 0; f->kind == MO_VEC && i < both; i++)
		walk(f->sub, mo_vec_element(f, mine, i), mo_vec_element(f, theirs, i), end);
}

static void set(const struct mo_field *f, void *mine, void *what, size_t n)
{
	*value(f, mine) = what;
	if (count(f, mine))
		*count(f, mine) = n;
}

static void field(const struct mo_field *f, void *mine, const void *theirs, enum end end)
{
	void *lent = *value(f, theirs);
	bool there = *value(f, mine) && *value(f, mine) == lent;

	if (there && end != LEND) {
		set(f, mine, NULL, 0);
		if (end == OWN)
			mo_field_copy(f, mine, theirs);
	} else if (!there && end == LEND && lent && mo_field_equal(f, mine, theirs)) {
		mo_field_done(f, mine);
		set(f, mine, lent, count(f, theirs) ? *count(f, theirs) : 0);
	} else if (!there) {
		inside(f, mine, theirs, end);
	}
}

static void walk(const struct mo_desc *d, void *mine, const void *theirs, enum end end)
{
	mo_assert(mine != theirs);
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];

		switch (f->kind) {
		case MO_STRUCT:
			walk(f->sub, (char *)mine + f->offset, (const char *)theirs + f->offset,
			     end);
			break;
		case MO_STR:
		case MO_RAWJSON:
		case MO_OPT:
		case MO_VEC:
		case MO_STRS:
		case MO_INTS:
		case MO_REALS: field(f, mine, theirs, end); break;
		case MO_BOOL:
		case MO_TRI:
		case MO_INT:
		case MO_ID:
		case MO_TIME:
		case MO_REAL:
		case MO_ENUM: break;
		}
	}
}

void mo_desc_lend(const struct mo_desc *d, void *mine, const void *theirs)
{
	walk(d, mine, theirs, LEND);
}

void mo_desc_own(const struct mo_desc *d, void *mine, const void *theirs)
{
	walk(d, mine, theirs, OWN);
}

void mo_desc_return(const struct mo_desc *d, void *mine, const void *theirs)
{
	walk(d, mine, theirs, RETURN);
}
