/* Errors of a document with their places, collected in any order (errors.h). */
#include "lib/recipe/errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/recipe/tree.h"

#define ERRORS_SHOWN 20
#define ERRORS_COLLECTED 1024

static struct mo_error *errors_add(struct recipe_errors *e, int64_t line, int64_t column,
				   const char *hint)
{
	struct mo_error *err = MO_GROW(e->items, e->n);

	err->line = line;
	err->column = column;
	err->hint = mo_strdup(hint);
	return err;
}

void errors_place(struct recipe_errors *e, int64_t line, int64_t column, const char *hint,
		  const char *fmt, ...)
{
	va_list ap;

	if (e->n >= ERRORS_COLLECTED)
		return;
	va_start(ap, fmt);
	errors_add(e, line, column, hint)->text = mo_vprintf(fmt, ap);
	va_end(ap);
}

void errors_at(struct recipe_errors *e, const struct ynode *where, const char *hint,
	       const char *fmt, ...)
{
	va_list ap;

	if (e->n >= ERRORS_COLLECTED)
		return;
	va_start(ap, fmt);
	_cleanup_(mo_freep) char *text = mo_vprintf(fmt, ap);
	va_end(ap);
	if (where->set)
		errors_add(e, 0, 0, hint)->text = mo_printf("%s: %s", where->set, text);
	else
		errors_add(e, where->line, where->column, hint)->text = TAKE_PTR(text);
}

static bool after(const struct mo_error *a, const struct mo_error *b)
{
	return a->line != b->line ? a->line > b->line : a->column > b->column;
}

int recipe_errors_finish(struct recipe_errors *e)
{
	for (size_t i = 1; i < e->n; i++) /* insertion: stable, and nearly sorted already */
		for (size_t k = i; k > 0 && after(&e->items[k - 1], &e->items[k]); k--) {
			struct mo_error t = e->items[k];

			e->items[k] = e->items[k - 1];
			e->items[k - 1] = t;
		}
	while (e->n > ERRORS_SHOWN)
		mo_error_done(&e->items[--e->n]);
	return e->n ? -EINVAL : 0;
}

void recipe_errors_done(struct recipe_errors *e)
{
	for (size_t i = 0; i < e->n; i++)
		mo_error_done(&e->items[i]);
	free(e->items);
	*e = (struct recipe_errors){ 0 };
}
