/* One value of a document, of a kind that the caller names. */
#include "lib/recipe/schema_scalar.h"

#include <math.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/schema.h"

#define TEXT_MAX 4096
/* 2^53: above it a float no longer says which whole number it is */
#define WHOLE_MAX 9007199254740992.0

char *value_shown(const struct ynode *v)
{
	if (v->kind != YAML_SCALAR)
		return mo_strdup(v->kind == YAML_MAP ? "a mapping" : "a list");
	if (ynode_is_empty(v))
		return mo_strdup("nothing");
	return mo_printf(v->plain ? "'%.60s'" : "the text \"%.60s\"", v->text);
}

void value_wrong(struct reader *r, const char *what, const struct ynode *v, const char *hint,
		 const char *expected)
{
	_cleanup_(mo_freep) char *shown = value_shown(v);

	errors_at(r->errors, v, hint, "%s: expected %s, got %s", what, expected, shown);
}

bool value_text(struct reader *r, const char *what, const struct ynode *v, char **ret)
{
	if (v->kind != YAML_SCALAR || ynode_is_empty(v)) {
		value_wrong(r, what, v, NULL, "a text");
		return false;
	}
	if (strlen(v->text) > TEXT_MAX) {
		errors_at(r->errors, v, NULL, "%s: longer than %d bytes", what, TEXT_MAX);
		return false;
	}
	mo_str_set(ret, v->text);
	return true;
}

bool value_whole_text(const char *text, int64_t *ret)
{
	double v;

	if (mo_parse_i64(text, INT64_MIN, INT64_MAX, ret) == 0)
		return true;
	if (mo_parse_double(text, &v) < 0 || !(fabs(v) <= WHOLE_MAX) || v != trunc(v))
		return false;
	*ret = (int64_t)v;
	return true;
}

bool value_whole(const struct ynode *v, int64_t *ret)
{
	return v->kind == YAML_SCALAR && v->plain && value_whole_text(v->text, ret);
}

bool value_int(struct reader *r, const char *what, const struct ynode *v, int64_t min, int64_t max,
	       int64_t *ret)
{
	int64_t n = 0;
	bool number = v->kind == YAML_SCALAR && value_whole_text(v->text, &n);

	if (number && v->plain && n >= min && n <= max) {
		*ret = n;
		return true;
	}
	_cleanup_(mo_freep) char *expected =
		max == INT64_MAX ? mo_printf("a whole number, at least %lld", (long long)min)
				 : mo_printf("a whole number from %lld to %lld", (long long)min,
					     (long long)max);

	value_wrong(r, what, v, number && !v->plain ? "remove the quotes" : NULL, expected);
	return false;
}

bool value_bool(struct reader *r, const char *what, const struct ynode *v, bool *ret)
{
	bool yes = v->kind == YAML_SCALAR && v->plain &&
		   (mo_streq(v->text, "true") || mo_streq(v->text, "True") ||
		    mo_streq(v->text, "TRUE"));
	bool no = v->kind == YAML_SCALAR && v->plain &&
		  (mo_streq(v->text, "false") || mo_streq(v->text, "False") ||
		   mo_streq(v->text, "FALSE"));

	if (!yes && !no) {
		value_wrong(r, what, v, NULL, "true or false");
		return false;
	}
	*ret = yes;
	return true;
}

void value_list(struct reader *r, const char *what, const struct ynode *v, char ***ret,
		size_t *n_ret)
{
	if (v->kind != YAML_LIST) {
		value_wrong(r, what, v, v->kind == YAML_SCALAR ? "write it as [a, b]" : NULL,
			    "a list");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		_cleanup_(mo_freep) char *text = NULL;

		if (value_text(r, what, v->items[i].value, &text))
			mo_strs_add(ret, n_ret, text);
	}
}
