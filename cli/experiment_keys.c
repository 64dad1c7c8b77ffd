/* Keys of an experiment that the engine file's version of the engine has nowhere. The engine
 * takes every key, and a misspelt one does nothing there; a tree of another version has others,
 * which pass through. Both are reported, and neither is refused. */
#include "cli/experiment_keys.h"

#include <stdio.h>
#include <string.h>

#include "cli/places.h"
#include "cli/visible.h"
#include "lib/base/parse.h"
#include "lib/recipe/engine_version.h"

#define REPORTED_MAX 10

MO_DEFINE_DONE(engine)

/* What Primus itself reads of every module, whatever its engine: modules/module_base.yaml, the
 * preset's name, which it puts back among the parameters, and the file that MaxText's own
 * configuration begins with. */
static const char *const primus_keys[] = { "model",           "trainable",         "sink_level",
					   "file_sink_level", "stderr_sink_level", "base_config" };

/* The key itself, or a map that has it. */
static bool is_known(const struct engine_checks *c, const char *key)
{
	for (size_t i = 0; i < ELEMENTSOF(primus_keys); i++)
		if (mo_streq(key, primus_keys[i]))
			return true;
	for (size_t i = 0; i < c->n_keys; i++) {
		size_t n = strlen(c->keys[i]);

		if (!strncmp(c->keys[i], key, n) && (!key[n] || key[n] == '.'))
			return true;
	}
	return false;
}

/* Do only files of the user's own say it, and no preset? *ret_any: some file does. */
static bool by_users(const struct experiment *x, const struct config_value *v, bool *ret_any)
{
	bool own = true;

	*ret_any = false;
	for (; v; v = v->over) {
		if (v->place.file < 0 || (size_t)v->place.file >= x->n_files)
			continue;
		*ret_any = true;
		own = own && !strstr(x->files[v->place.file], PLACES_PRESETS "/");
	}
	return own && *ret_any;
}

/* "Primus fd1eeab (2026-08-22)" of where the list was read. */
static char *version_of(const struct engine *e)
{
	const char *source = e->checks->keys_source ? e->checks->keys_source : e->kind;

	return mo_strndup(source, strcspn(source, ","));
}

static void tell_own(const struct experiment *x, const struct engine *e,
		     const struct config_item *item)
{
	const struct engine_checks *c = e->checks;
	const char *near = mo_near_miss(item->key, (const char *const *)c->keys, c->n_keys);
	_cleanup_(mo_freep) char *place = experiment_place(x, item->value->place);
	_cleanup_(mo_freep) char *version = version_of(e);
	_cleanup_(mo_freep) char *text =
		mo_printf("%s: warning: %s: no preset and no option of %s has this key: it passes "
			  "through, and may do nothing%s%s%s",
			  place, item->key, version, near ? "; did you mean '" : "",
			  near ? near : "", near ? "'?" : "");
	_cleanup_(mo_freep) char *shown = visible(text);

	fprintf(stderr, "%s\n", shown);
}

/* What Primus reads of a module beside its parameters. */
static const char *const module_keys[] = { "framework", "config", "model", "overrides" };

/* `override:`: all that is below it is a parameter of that name, and nothing of it is used. The
 * name that was meant; NULL: none is like it. */
static const char *meant_of_module(const struct experiment *x, const char *key)
{
	_cleanup_(mo_freep) char *first = mo_strndup(key, strcspn(key, "."));
	const struct config_value *v = config_find(x->merged, first);

	const char *near =
		v && !v->over ? mo_near_miss(first, module_keys, ELEMENTSOF(module_keys)) : NULL;

	return mo_streq(near, first) ? NULL : near;
}

static void tell_of_module(const struct experiment *x, const char *key, const char *near)
{
	_cleanup_(mo_freep) char *first = mo_strndup(key, strcspn(key, "."));
	_cleanup_(mo_freep) char *place = experiment_place(x, config_find(x->merged, first)->place);
	_cleanup_(mo_freep) char *text =
		mo_printf("%s: warning: %s: nothing reads this key of the module%s; did you mean "
			  "'%s'?",
			  place, first, key[strlen(first)] ? ", and nothing below it is used" : "",
			  near);
	_cleanup_(mo_freep) char *shown = visible(text);

	fprintf(stderr, "%s\n", shown);
}

/* Do both begin with the same key? */
static bool same_first(const char *a, const char *b)
{
	size_t n = strcspn(b, ".");

	return a && strcspn(a, ".") == n && strncmp(a, b, n) == 0;
}

void experiment_unknown_keys(const struct recipe_input *in, const struct experiment *x)
{
	_cleanup_(engine_done) struct engine e;
	_cleanup_(mo_buf_done) struct mo_buf others = { 0 };
	struct config_item *items = NULL;
	const char *reported = NULL;
	size_t n = 0, own = 0, n_others = 0;
	bool any;

	mo_desc_init(&engine_desc, &e);
	if (engine_load_for(&in->recipe, &e, NULL) < 0 || !e.checks || !e.checks->n_keys ||
	    (e.checks->keys_complete && !e.experiment)) /* the rules say so (rules_files.c) */
		return;
	const struct config_value *more =
		e.checks->keys_more ? config_find(x->merged, e.checks->keys_more) : NULL;
	if (more && more->text && *more->text) /* a module of the user's own adds keys */
		return;
	config_items(x->merged, &items, &n);
	for (size_t i = 0; i < n; i++) {
		if (is_known(e.checks, items[i].key))
			continue;
		const char *near = in->engine.experiment ? meant_of_module(x, items[i].key) : NULL;
		bool own_key = by_users(x, items[i].value, &any);

		if (own_key && near) {
			if (!same_first(reported, items[i].key))
				tell_of_module(x, items[i].key, near);
			reported = items[i].key;
		} else if (own_key) {
			if (own++ < REPORTED_MAX)
				tell_own(x, &e, &items[i]);
		} else if (any && n_others++ < REPORTED_MAX) {
			mo_buf_printf(&others, "%s%s", others.len ? ", " : "", items[i].key);
		}
	}
	config_items_free(items, n);
	if (own > REPORTED_MAX)
		fprintf(stderr, "%s: warning: %zu more keys of the experiment are unknown\n",
			in->file, own - REPORTED_MAX);
	_cleanup_(mo_freep) char *version = version_of(&e);
	_cleanup_(mo_freep) char *list = visible(others.data ? others.data : "");

	if (n_others)
		fprintf(stderr, "%s: note: %zu %s not of %s: %s%s; %s through\n", in->file,
			n_others,
			n_others == 1 ? "key of the presets is" : "keys of the presets are",
			version, list, n_others > REPORTED_MAX ? ", .." : "",
			n_others == 1 ? "it passes" : "they pass");
}
