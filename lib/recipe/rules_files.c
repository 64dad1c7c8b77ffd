/* Keys of an engine's own files that its version has not, where its loader ends by them
 * (`keys_complete`): a file of another version, whose kind is named, an old name, a misspelt
 * one. Experiments are not of these: their loader takes every key. */
#include "lib/recipe/rules_files.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/engine_load.h"
#include "lib/recipe/experiment_record.h"

#define REPORTED_MAX 10
#define UNCHECKED "engine.args_unchecked: [KEY] lets it pass"
#define NAMED_MAX 6 /* of the keys of another version */

struct unknown {
	const char *key;
	const struct config_value *value;
};

struct unknowns {
	struct unknown *items;
	size_t n;
};

/* The key itself, or a map that has it. */
static bool is_known(const struct engine_checks *c, const char *key)
{
	for (size_t i = 0; i < c->n_keys; i++) {
		size_t n = strlen(c->keys[i]);

		if (!strncmp(c->keys[i], key, n) && (!key[n] || key[n] == '.'))
			return true;
	}
	return false;
}

/* Only a warning: who runs the older release is not refused. */
static bool is_older(const struct engine_checks *c, const char *key)
{
	return mo_enum_parse((const char *const *)c->keys_older, c->n_keys_older, key) >= 0;
}

static const char *instead_of(const struct engine_checks *c, const char *key)
{
	for (size_t i = 0; i < c->n_renamed; i++)
		if (flag_same(key, c->renamed[i].key, strlen(c->renamed[i].key)))
			return c->renamed[i].value;
	return NULL;
}

/* Does it read the same files? */
static bool reads_like(const struct engine *a, const struct engine *b)
{
	return a->n_config_files && b->n_config_files && !b->experiment &&
	       mo_streq(a->config_files[0].key, b->config_files[0].key) &&
	       mo_streq(a->config_files[0].value, b->config_files[0].value);
}

/* How many keys of the files it has not. */
static size_t unknown_to(const struct engine *e, const struct config_item *items, size_t n)
{
	size_t unknown = 0;

	for (size_t i = 0; i < n; i++)
		unknown += items[i].value->place.file >= 0 && !is_known(e->checks, items[i].key) &&
			   !is_older(e->checks, items[i].key);
	return unknown;
}

/* Of the kind, when it reads the same files; SIZE_MAX: it does not. */
static size_t unknown_to_kind(const struct engine *e, const char *kind,
			      const struct config_item *items, size_t n)
{
	struct engine other;
	size_t unknown = SIZE_MAX;

	mo_desc_init(&engine_desc, &other);
	if (engine_load(kind, &other, NULL) == 0 && other.checks && reads_like(e, &other))
		unknown = unknown_to(&other, items, n);
	mo_desc_done(&engine_desc, &other);
	return unknown;
}

static char *kind_of_items(const struct engine *e, const struct config_item *items, size_t n)
{
	char **kinds = NULL, *best = NULL;
	size_t n_kinds = 0, least = unknown_to(e, items, n);

	if (least)
		mo_data_names("engines", &kinds, &n_kinds);
	for (size_t i = 0; i < n_kinds; i++) {
		size_t unknown = unknown_to_kind(e, kinds[i], items, n);
		/* names come in no order */
		bool first = best && unknown == least && strcmp(kinds[i], best) < 0;

		if (unknown < least || first) {
			least = unknown;
			mo_str_set(&best, kinds[i]);
		}
	}
	mo_strs_clear(&kinds, &n_kinds);
	return best;
}

char *engine_kind_of_keys(const struct engine *e, const struct config_value *merged)
{
	struct config_item *items = NULL;
	size_t n = 0;

	if (!e->checks || !e->checks->n_keys)
		return NULL;
	config_items(merged, &items, &n);
	char *kind = kind_of_items(e, items, n);

	config_items_free(items, n);
	return kind;
}

static char *place_of(const struct experiment *x, const struct unknown *u)
{
	_cleanup_(mo_freep) char *where = experiment_place(x, u->value->place);

	return mo_printf("%s: %s", where, u->key);
}

/* What each is called here, as far as the list says; the kind may know more of them. */
static char *new_names(const struct engine_checks *c, const struct unknowns *u)
{
	struct mo_buf b = { 0 };
	size_t reported = 0;

	for (size_t i = 0; i < u->n; i++) {
		const char *instead = instead_of(c, u->items[i].key);

		if (instead && ++reported <= NAMED_MAX)
			mo_buf_printf(&b, "%s%s: %s", b.len ? "; " : "", u->items[i].key, instead);
	}
	return b.data ? mo_buf_take(&b) : NULL;
}

/* All of them in one line: each by itself would hide that the file is another version's. */
static void tell_version(struct rules *k, const struct experiment *x, const struct unknowns *u,
			 const char *kind, const char *version)
{
	const struct unknown *first = &u->items[0];

	for (size_t i = 1; i < u->n; i++)
		if (u->items[i].value->place.line < first->value->place.line)
			first = &u->items[i];
	_cleanup_(mo_freep) char *place = place_of(x, first),
				 *names = new_names(k->engine->checks, u);
	_cleanup_(mo_freep) char *more =
		u->n > 1 ? mo_printf(", nor %zu more of the file's", u->n - 1) : NULL;
	const struct ynode at = { .left = true, .set = place };

	errors_at(k->errors, &at, UNCHECKED,
		  "%s has no such key%s, and refuses the file: use engine.kind: %s%s%s", version,
		  more ? more : "", kind, names ? ", or the keys of this version: " : "",
		  names ? names : "");
}

/* Old names and misspelt ones are errors; a key that nobody knows may be one of the user's own
 * tree. */
static void tell(struct rules *k, const struct experiment *x, const struct unknown *u,
		 const char *version)
{
	const struct engine_checks *c = k->engine->checks;
	const char *instead = instead_of(c, u->key);
	const char *near = mo_near_miss(u->key, (const char *const *)c->keys, c->n_keys);
	_cleanup_(mo_freep) char *place = place_of(x, u);
	_cleanup_(mo_freep) char *hint =
		near ? mo_printf("did you mean '%s'? " UNCHECKED, near) : NULL;
	const struct ynode at = { .left = true, .set = place };

	if (is_older(c, u->key))
		instead = near = NULL;
	if (instead)
		errors_at(k->errors, &at, UNCHECKED, "%s has no such key, and refuses the file: %s",
			  version, instead);
	else if (near)
		errors_at(k->errors, &at, hint, "%s has no such key, and refuses the file",
			  version);
	else
		rules_warn(k, &at,
			   "%s has no such key: only a tree that has it does not refuse the file",
			   version);
}

static void find(const struct engine_checks *c, const struct config_item *items, size_t n,
		 struct unknowns *ret)
{
	for (size_t i = 0; i < n; i++)
		if (items[i].value->place.file >= 0 && !is_known(c, items[i].key))
			*MO_GROW(ret->items, ret->n) =
				(struct unknown){ items[i].key, items[i].value };
}

/* Without the keys that engine.args_unchecked names: they speak for no kind either. */
static size_t drop_unchecked(const struct rules *k, struct config_item *items, size_t n)
{
	size_t retained = 0;

	for (size_t i = 0; i < n; i++) {
		const struct config_item item = items[i];

		if (rules_unchecked(k, item.key))
			continue;
		items[i] = items[retained];
		items[retained++] = item;
	}
	return retained;
}

void rules_files(struct rules *k)
{
	const struct engine_checks *c = k->engine->checks;
	struct config_item *items = NULL;
	struct unknowns u = { 0 };
	struct experiment x;
	size_t n = 0;

	if (!c || !c->n_keys || !c->keys_complete || k->engine->experiment ||
	    experiment_of_tree(k->root, &x, NULL) < 0)
		return;
	const char *source = c->keys_source ? c->keys_source : k->engine->source;
	_cleanup_(mo_freep) char *version = mo_strndup(source, strcspn(source, ","));

	config_items(x.merged, &items, &n);
	size_t checked = drop_unchecked(k, items, n);

	if (!rules_extended(k, x.merged)) /* a module of the user's own adds keys */
		find(c, items, checked, &u);
	_cleanup_(mo_freep) char *kind = u.n ? kind_of_items(k->engine, items, checked) : NULL;

	if (kind)
		tell_version(k, &x, &u, kind, version);
	for (size_t i = 0; !kind && i < u.n && i < REPORTED_MAX; i++)
		tell(k, &x, &u.items[i], version);
	if (!kind && u.n > REPORTED_MAX)
		rules_warn(k, PLACE(k, "engine.args", "engine"),
			   "%zu more keys of the engine's files are unknown", u.n - REPORTED_MAX);
	free(u.items);
	config_items_free(items, n);
	experiment_done(&x);
}
