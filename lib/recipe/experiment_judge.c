/* See experiment_judge.h. */
#include "lib/recipe/experiment_judge.h"

#include <errno.h>
#include <string.h>

#include "lib/recipe/directory.h"
#include "lib/recipe/experiment_document.h"
#include "lib/recipe/experiment_kind.h"
#include "lib/recipe/recipe_file.h"

#define ERRORS_REPORTED 3

struct parsed {
	struct recipe recipe;
	struct recipe_errors errors;
	char **warnings;
	size_t n_warnings;
};

static void parsed_done(struct parsed *p)
{
	mo_desc_done(&recipe_desc, &p->recipe);
	recipe_errors_done(&p->errors);
	mo_strs_clear(&p->warnings, &p->n_warnings);
}

void experiment_verdict_done(struct experiment_verdict *v)
{
	free(v->refused);
	free(v->unjudged);
	free(v->directory);
	free(v->document);
	mo_strs_clear(&v->warnings, &v->n_warnings);
	mo_desc_done(&recipe_desc, &v->recipe);
	*v = (struct experiment_verdict){ 0 };
}

static int parse(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
		 struct parsed *ret)
{
	*ret = (struct parsed){ 0 };
	mo_desc_init(&recipe_desc, &ret->recipe);
	return recipe_parse(text, n, sets, n_sets, &ret->recipe, NULL, &ret->warnings,
			    &ret->n_warnings, &ret->errors);
}

static void add_error(struct mo_buf *b, const struct mo_error *e)
{
	mo_buf_printf(b, "%s%s%s%s", b->len ? "; " : "", mo_error_text(e, -EINVAL),
		      e->hint ? ": " : "", e->hint ? e->hint : "");
}

static char *errors_text(const struct recipe_errors *errors)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < errors->n && i < ERRORS_REPORTED; i++)
		add_error(&b, &errors->items[i]);
	if (errors->n > ERRORS_REPORTED)
		mo_buf_printf(&b, "; and %zu more", errors->n - ERRORS_REPORTED);
	return mo_buf_take(&b);
}

/* The names that make the directory, each a text: what is not of our own making need not have
 * them. */
static bool has_names(const struct engine *e, const struct experiment *x)
{
	for (size_t i = 0; i < e->n_save_names; i++) {
		const struct config_value *v =
			x->names ? config_get(x->names, e->save_names[i].key) : NULL;

		if (!v || !v->text)
			return false;
	}
	return e->n_save_names > 0;
}

/* Nothing is saved without that key, as in most files of the vendor: then the directory is
 * nobody's. */
static bool saves(const struct engine *e, const struct experiment *x)
{
	const struct config_value *v = e->save_key ? config_find(x->merged, e->save_key) : NULL;

	return !e->save_key || (v && v->kind != CONFIG_NULL);
}

static bool has(char *const *texts, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(texts[i], text))
			return true;
	return false;
}

/* What the rules for whole files say, before those for values. */
static bool refuses_file(const struct engine *e, const struct recipe *r, const struct experiment *x,
			 bool named, struct experiment_verdict *ret)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct mo_buf b = { 0 };

	if (experiment_kind_check(e, x, &err) >= 0 &&
	    (!named || experiment_directory_check(e, r, x, &err) >= 0))
		return false;
	add_error(&b, &err);
	ret->refused = mo_buf_take(&b);
	return true;
}

static void take(struct parsed *both, const struct parsed *alone, struct experiment_verdict *ret)
{
	for (size_t i = 0; i < both->n_warnings; i++)
		if (!has(alone->warnings, alone->n_warnings, both->warnings[i]))
			mo_strs_add(&ret->warnings, &ret->n_warnings, both->warnings[i]);
	mo_desc_copy(&recipe_desc, &ret->recipe, &both->recipe);
}

void experiment_judge(const struct engine *e, const struct recipe *r, const char *text, size_t n,
		      const struct experiment *x, struct experiment_verdict *ret)
{
	_cleanup_(parsed_done) struct parsed alone, both = { 0 };
	bool named = has_names(e, x);

	*ret = (struct experiment_verdict){ 0 };
	mo_desc_init(&recipe_desc, &ret->recipe);
	mo_desc_init(&recipe_desc, &both.recipe);
	/* Another version may have other rules: the fault is then neither the file's nor the
	 * user's. */
	if (parse(text, n, NULL, 0, &alone) < 0) {
		_cleanup_(mo_freep) char *why = errors_text(&alone.errors);

		ret->unjudged = mo_printf("this version refuses the recipe by itself: %s", why);
		return;
	}
	if (refuses_file(e, r, x, named, ret))
		return;
	ret->document = experiment_document(e, r, x);
	const struct recipe_set set = { (char *)"experiment", ret->document, (char *)"experiment" };

	mo_desc_done(&recipe_desc, &both.recipe);
	if (parse(text, n, &set, 1, &both) < 0) {
		ret->refused = errors_text(&both.errors);
		return;
	}
	take(&both, &alone, ret);
	if (named && !r->checkpoint.dir && e->save_below && saves(e, x))
		ret->directory = experiment_directory(e, x, r->engine.workdir);
}
