/* What is wrong with a document, at its places: several errors at once, in its order. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "lib/base/error.h"
#include "lib/base/util.h"

struct recipe_errors {
	struct mo_error *items;
	size_t n;      /* several errors, at most 20 */
	bool keep;     /* the caller wants the recipe also when only rules between its keys fail: */
	bool retained; /* it is there */
};
void recipe_errors_done(struct recipe_errors *e);
struct ynode;
/* Errors are collected in any order and sorted by recipe_errors_finish(), which keeps the first
 * 20. */
void errors_at(struct recipe_errors *e, const struct ynode *where, const char *hint,
	       const char *fmt, ...) _printf_(4, 5);
void errors_place(struct recipe_errors *e, int64_t line, int64_t column, const char *hint,
		  const char *fmt, ...) _printf_(5, 6);
/* 0 when there is none, else -EINVAL with the items in document order. */
int recipe_errors_finish(struct recipe_errors *e);
