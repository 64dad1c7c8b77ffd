/* See config_explain.h. */
#include "lib/recipe/config_explain.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/mask.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/config_files.h"
#include "lib/recipe/experiment_forced.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/set.h"
#include "lib/recipe/yaml.h"

#define LIKE_MAX 8 /* keys that may have been meant */
#define DEFAULTS \
	"keys that are not listed have the engine's default, which is not read: it lives in its " \
	"Python"

struct config_teller {
	const struct config_given *given;
	const struct experiment *experiment;
	bool *by_recipe; /* of each word of the command */
	struct experiment_forced *forced;
	size_t n_forced;
};

struct rank_command rank_command_of(const struct engine *e, const struct recipe *r)
{
	struct rank_command c = { 0 };

	engine_argv_origins(e, r, &c.words, &c.n_words, &c.origins);
	return c;
}

void rank_command_done(struct rank_command *c)
{
	for (size_t i = 0; i < c->n_words; i++)
		free(c->words[i]);
	free(c->words);
	word_origins_done(&c->origins);
	*c = (struct rank_command){ 0 };
}

/* The word of a recipe behind what a row of the engine gives: a derived value has another. */
static const char *asked_by(const char *path)
{
	return mo_streq(path, "derived.pass_batch") ? "batch.micro" : path;
}

/* root: of the recipe, NULL when it has none. */
static struct config_teller *teller_of(const struct config_given *g, const struct experiment *x,
				       const struct ynode *root)
{
	struct config_teller *t = mo_alloc(sizeof(*t));
	const struct word_origins *o = &g->command->origins;

	*t = (struct config_teller){ g, x, mo_alloc_array(o->n + 1, sizeof(bool)) };
	experiment_forced(g->engine, x, &t->forced, &t->n_forced);
	for (size_t i = 0; i < o->n; i++) {
		const char *path = asked_by(o->items[i]);

		t->by_recipe[i] = path && (mo_starts_with(path, "engine.arg") ||
					   (root && !ynode_is_null(ynode_find(root, path))));
	}
	return t;
}

struct config_teller *config_teller_new(const struct config_given *g, const struct experiment *x)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(ynode_freep) struct ynode *root =
		recipe_tree(g->text, g->n, g->sets, g->n_sets, &errors);

	return teller_of(g, x, root);
}

struct config_teller *config_teller_free(struct config_teller *t)
{
	if (t) {
		free(t->by_recipe);
		experiment_forced_free(t->forced, t->n_forced);
	}
	free(t);
	return NULL;
}

/* Is it a value that `parallelism: auto` leaves to the planner? */
static bool is_planned(const struct recipe *r, const char *path)
{
	static const char *const paths[] = { "recompute", "batch.micro",
					     "features.pipeline_layout" };

	return r->parallelism.automatic && (mo_starts_with(path, "parallelism.") ||
					    mo_enum_parse(paths, ELEMENTSOF(paths), path) >= 0);
}

struct config_source config_source(const struct config_teller *t, struct config_place place)
{
	const struct word_origins *o = &t->given->command->origins;
	size_t word = (size_t)place.word;
	const char *asked = place.word >= 0 && word < o->n ? asked_by(o->items[word]) : NULL;

	if (place.file >= 0 && (size_t)place.file < t->experiment->n_files)
		return (struct config_source){ .file = t->experiment->files[place.file],
					       .line = place.line };
	if (asked && t->by_recipe[word])
		return (struct config_source){ .recipe = asked };
	if (asked && is_planned(t->given->recipe, asked))
		return (struct config_source){
			.moectl =
				t->given->undecided
					? mo_printf("not decided yet (parallelism: auto): %s",
						    t->given->undecided)
					: mo_strdup("chosen by the planner (parallelism: auto)")
		};
	if (asked)
		return (struct config_source){
			.moectl = mo_printf("%s is what moectl takes where the recipe says nothing",
					    asked)
		};
	if (place.word >= 0 && word >= o->n)
		return (struct config_source){ .moectl = mo_strdup(
						       "a word of this attempt alone: where it "
						       "resumes, or what engine.prepare printed") };
	return (struct config_source){
		.moectl = mo_printf("a word that engine %s adds to every command",
				    t->given->recipe->engine.kind)
	};
}

static void text_json(const char *s, struct mo_buf *b)
{
	const struct config_value v = { .kind = CONFIG_TEXT, .text = (char *)s };

	config_json(&v, b);
}

static void source_json(const struct config_teller *t, struct config_place place, struct mo_buf *b)
{
	struct config_source from = config_source(t, place);

	if (from.file) {
		mo_buf_str(b, "{\"file\":");
		text_json(from.file, b);
		mo_buf_printf(b, ",\"line\":%lld}", (long long)from.line);
	} else {
		mo_buf_str(b, from.recipe ? "{\"recipe\":" : "{\"moectl\":");
		text_json(from.recipe ? from.recipe : from.moectl, b);
		mo_buf_str(b, "}");
	}
	free(from.moectl);
}

/* As config_json(), without what looks like a secret: by its key, by the variable that it came
 * from, by the word before it in a list, by its own form. key NULL: it has none. */
static void masked_json(const char *key, const struct config_value *v, struct mo_buf *b);

/* Words of a command among them: the value behind --api-key. */
static void masked_list(const struct config_value *v, struct mo_buf *b)
{
	char **words = mo_alloc_array(v->n + 1, sizeof(*words));

	for (size_t i = 0; i < v->n; i++) {
		const struct config_value *item = v->items[i].value;

		words[i] = mo_strdup(item->kind == CONFIG_TEXT ? item->text : "");
	}
	mo_mask_words(words, v->n);
	mo_buf_str(b, "[");
	for (size_t i = 0; i < v->n; i++) {
		mo_buf_str(b, i ? "," : "");
		if (v->items[i].value->kind == CONFIG_TEXT)
			text_json(words[i], b);
		else
			masked_json(NULL, v->items[i].value, b);
		free(words[i]);
	}
	mo_buf_str(b, "]");
	free(words);
}

static void masked_json(const char *key, const struct config_value *v, struct mo_buf *b)
{
	bool secret =
		(key && mo_mask_argument(key)) || (v->variable && mo_mask_variable(v->variable));

	if (v->kind == CONFIG_NULL || v->kind == CONFIG_BOOL) {
		config_json(v, b);
	} else if (secret) {
		text_json(MO_MASKED, b);
	} else if (v->kind == CONFIG_TEXT) {
		_cleanup_(mo_freep) char *shown = mo_mask_text(v->text);

		text_json(shown, b);
	} else if (v->kind == CONFIG_LIST) {
		masked_list(v, b);
	} else if (v->kind == CONFIG_MAP) {
		mo_buf_str(b, "{");
		for (size_t i = 0; i < v->n; i++) {
			mo_buf_str(b, i ? "," : "");
			text_json(v->items[i].key, b);
			mo_buf_str(b, ":");
			masked_json(v->items[i].key, v->items[i].value, b);
		}
		mo_buf_str(b, "}");
	} else {
		config_json(v, b);
	}
}

static void value_json(const char *key, const struct config_value *v, bool mask, struct mo_buf *b)
{
	if (mask)
		masked_json(key, v, b);
	else
		config_json(v, b);
}

/* What the engine itself makes of it behind the merge. */
static void forced_json(const struct config_teller *t, const char *key, bool mask, struct mo_buf *b)
{
	for (size_t i = 0; i < t->n_forced; i++) {
		const struct experiment_forced *f = &t->forced[i];

		if (!mo_streq(f->key, key))
			continue;
		_cleanup_(mo_freep) char *why =
			mo_printf("engine %s sets it: %s", t->given->recipe->engine.kind,
				  f->because);

		mo_buf_str(b, ",\"forced\":{\"value\":");
		value_json(key, f->value, mask, b);
		mo_buf_str(b, ",\"source\":{\"moectl\":");
		text_json(why, b);
		mo_buf_str(b, "}}");
	}
}

static void item_json(const struct config_teller *t, const struct config_item *item, bool mask,
		      struct mo_buf *b)
{
	mo_buf_str(b, "{\"key\":");
	text_json(item->key, b);
	mo_buf_str(b, ",\"value\":");
	value_json(item->key, item->value, mask, b);
	mo_buf_str(b, ",\"source\":");
	source_json(t, item->value->place, b);
	if (item->value->variable) {
		mo_buf_str(b, ",\"variable\":");
		text_json(item->value->variable, b);
	}
	forced_json(t, item->key, mask, b);
	mo_buf_str(b, ",\"overrides\":[");
	for (const struct config_value *v = item->value->over; v; v = v->over) {
		mo_buf_str(b, v == item->value->over ? "{\"value\":" : ",{\"value\":");
		value_json(item->key, v, mask, b);
		mo_buf_str(b, ",\"source\":");
		source_json(t, v->place, b);
		mo_buf_str(b, "}");
	}
	mo_buf_str(b, "]}");
}

/* The key itself, or what is below it. */
static bool asked_for(const char *key, const char *item)
{
	size_t n = key ? strlen(key) : 0;

	return !key || (!strncmp(key, item, n) && (!item[n] || item[n] == '.'));
}

/* The names of the run that its directories are made of, each as a key of its own. */
static size_t names_json(const struct config_value *names, const char *key, bool mask,
			 struct mo_buf *b)
{
	size_t found = 0;

	mo_buf_str(b, "{");
	for (size_t i = 0; names && i < names->n; i++) {
		const char *name = names->items[i].key;

		if (!asked_for(key, name))
			continue;
		mo_buf_str(b, found++ ? "," : "");
		text_json(name, b);
		mo_buf_str(b, ":");
		value_json(name, names->items[i].value, mask, b);
	}
	mo_buf_str(b, "}");
	return found;
}

/* Keys that may have been meant by one that is not there: the nearest, then those that hold its
 * words. */
static void like_json(const struct config_item *items, size_t n, const struct config_value *names,
		      const char *key, struct mo_buf *b)
{
	const char **all = mo_alloc_array(n + names->n + 1, sizeof(*all)), *near;
	size_t n_all = 0, listed = 0;

	for (size_t i = 0; i < n; i++)
		all[n_all++] = items[i].key;
	for (size_t i = 0; i < names->n; i++)
		all[n_all++] = names->items[i].key;
	near = mo_near_miss(key, all, n_all);
	mo_buf_str(b, ",\"like\":[");
	if (near && ++listed)
		text_json(near, b);
	for (size_t i = 0; i < n_all && listed < LIKE_MAX; i++) {
		if (all[i] == near || !strcasestr(all[i], key))
			continue;
		mo_buf_str(b, listed++ ? "," : "");
		text_json(all[i], b);
	}
	mo_buf_str(b, "]");
	free(all);
}

size_t config_explain(const struct config_teller *t, const char *key, bool mask, struct mo_buf *b)
{
	const struct config_place nowhere = { -1, 0, -1 };
	const struct experiment *x = t->experiment;
	_cleanup_(config_value_freep) struct config_value *none =
		config_value_new(CONFIG_MAP, NULL, nowhere);
	const struct config_value *names = x->names ? x->names : none;
	struct config_item *items = NULL;
	size_t n = 0, found = 0, named;

	mo_buf_str(b, "{\"engine\":");
	text_json(t->given->recipe->engine.kind, b);
	mo_buf_printf(b, ",\"hash\":\"crc32c:%08x\",\"files\":[", x->crc);
	for (size_t i = 0; i < x->n_files; i++) {
		mo_buf_str(b, i ? "," : "");
		text_json(x->files[i], b);
	}
	mo_buf_str(b, "],\"unread\":[");
	for (size_t i = 0; i < x->n_unread; i++) {
		mo_buf_str(b, i ? "," : "");
		text_json(x->unread[i], b);
	}
	mo_buf_str(b, "],\"defaults\":");
	text_json(DEFAULTS, b);
	mo_buf_str(b, ",\"names\":");
	named = names_json(names, key, mask, b);
	mo_buf_str(b, ",\"items\":[");
	config_items(x->merged, &items, &n);
	for (size_t i = 0; i < n; i++) {
		if (!asked_for(key, items[i].key))
			continue;
		mo_buf_str(b, found++ ? "," : "");
		item_json(t, &items[i], mask, b);
	}
	mo_buf_str(b, "]");
	if (key && !found && !named)
		like_json(items, n, names, key, b);
	mo_buf_str(b, "}");
	config_items_free(items, n);
	return found + named;
}

/* As the job's node read it, else as the submit did. */
static int experiment_of(const struct config_given *g, const struct ynode *root,
			 const char *of_node, struct experiment *ret, struct mo_error *err)
{
	const struct rank_command *c = g->command;

	if (of_node) { /* a node reads it with the words as they are */
		_cleanup_(mo_freep) char *text = mo_printf("experiment: %s\n", of_node);

		return experiment_of_text(text, strlen(text), ret, err);
	}
	int r = experiment_of_tree(root, ret, err);

	if (g->engine->config_words && (r == 0 || r == -ENOENT))
		return config_files_command(g->engine, ret, c->words, c->n_words, err);
	return r < 0 ? r : experiment_command(ret, c->words, c->n_words, err);
}

int config_explain_record(const struct config_given *g, const char *of_node, const char *key,
			  struct mo_buf *b, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(ynode_freep) struct ynode *root =
		recipe_tree(g->text, g->n, g->sets, g->n_sets, &errors);
	_cleanup_(experiment_done) struct experiment x = { 0 };
	int r = experiment_of(g, root, of_node, &x, err);

	if (r < 0)
		return r;
	_cleanup_(config_teller_freep) struct config_teller *t = teller_of(g, &x, root);

	config_explain(t, key, true, b);
	return 0;
}
