/* Recipe text -> struct recipe: guards (yaml.c), keys (schema.c, keys.c), engine file, then the
 * rules between keys (rules.c). Called by the command line and, on the same text again, by the
 * controller. */
#include "lib/recipe/recipe_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/args.h"
#include "lib/recipe/config_toml.h"
#include "lib/recipe/engine_lines.h"
#include "lib/recipe/engine_plan.h"
#include "lib/recipe/engine_version.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/rules_layout.h"
#include "lib/recipe/runaway.h"
#include "lib/recipe/left.h"
#include "lib/recipe/rules.h"
#include "lib/recipe/set.h"

/* iterations: checkpoint.every: auto before anything was measured or can be planned; a tenth of
 * `steps` when that is less */
#define FIRST_EVERY 200

/* Nothing to estimate an interval by: a number to begin with. From the next attempt on it
 * follows what saves and iterations took (daemon/core/update/interval.c). */
static void first_interval(struct recipe *r)
{
	if (r->checkpoint.every != 0 ||
	    (!r->unread && r->model && r->gpu && r->seq != MO_NONE && r->global_batch != MO_NONE))
		return;
	r->checkpoint.every =
		r->steps == MO_NONE ? FIRST_EVERY : MO_MIN(MO_MAX(r->steps / 10, 1), FIRST_EVERY);
	r->checkpoint.automatic = true;
}

/* Values that follow from others: batch.global from global_tokens, dp from the GPUs, `none` from
 * 0, the engine's signal. */
static void resolve(struct recipe *r, const struct engine *e)
{
	struct recipe_parallelism *p = &r->parallelism;
	int64_t model_ranks = mo_times(mo_times(p->tp, p->pp), p->cp);

	directory_settle(r, e);
	if (!r->model) /* nothing to choose by: all GPUs are data-parallel */
		p->automatic = false;
	if (r->stop_signal == MO_NONE)
		r->stop_signal = e->stop_signal != MO_NONE ? e->stop_signal : SIGTERM;
	if (r->time_limit_us == 0)
		r->time_limit_us = MO_NONE;
	if (r->global_batch == MO_NONE && r->global_tokens != MO_NONE && r->seq != MO_NONE &&
	    r->global_tokens % r->seq == 0)
		r->global_batch = r->global_tokens / r->seq;
	first_interval(r);
	if (!r->unread && p->dp == MO_NONE && model_ranks > 0 && r->gpus % model_ranks == 0)
		p->dp = r->gpus / model_ranks;
	if (!r->n_preflight)
		mo_strs_add(&r->preflight, &r->n_preflight, "standard");
	/* An entry that is one of our data files (engines/tiny_moe/train.py) is found wherever
	 * the program is installed; in an image it is not. */
	_cleanup_(mo_freep) char *file = r->engine.entry && r->engine.entry[0] != '/' &&
							 !rules_leads_out(r->engine.entry) &&
							 !r->engine.container
						 ? mo_data_file(r->engine.entry)
						 : NULL;
	_cleanup_(mo_freep) char *entry = file ? realpath(file, NULL) : NULL;

	if (entry)
		mo_str_set(&r->engine.entry, entry);
}

/* The value of a key that was read; with duplicate mappings the first need not have it. */
static const struct ynode *place(const struct ynode *root, const char *path)
{
	const struct ynode *n = ynode_find(root, path);

	return n ? n : root;
}

static void load_engine(const struct ynode *root, const struct recipe *r, struct engine *ret,
			struct recipe_errors *errors)
{
	struct mo_error err = { 0 };

	if (engine_load_for(r, ret, &err) < 0)
		errors_at(errors, place(root, "engine.kind"), err.hint, "engine.kind: %s",
			  mo_error_text(&err, -EINVAL));
	mo_error_done(&err);
}

/* metrics.lines: before those of the engine, because what is read first of an iteration counts. */
static void read_metrics(const struct ynode *root, struct recipe *r, struct engine *e,
			 struct recipe_errors *errors)
{
	const struct ynode *lines = ynode_find(root, "metrics.lines");
	struct line_rule *own = e->rules;
	size_t n_own = e->n_rules;

	if (ynode_is_null(lines))
		return;
	e->rules = NULL;
	e->n_rules = 0;
	pattern_budget_begin();
	engine_lines_read(errors, "metrics.lines", lines, &e->rules, &e->n_rules);
	pattern_budget_end();
	if (e->n_rules)
		r->own_lines = (int64_t)e->n_rules;
	for (size_t i = 0; i < n_own; i++)
		mo_desc_copy(&line_rule_desc, MO_ADD(e, rules, &line_rule_desc), &own[i]);
	mo_vec_clear(&line_rule_desc, (void **)&own, &n_own);
}

static void load_gpu(const struct ynode *root, const char *name, struct recipe_errors *errors)
{
	struct mo_error err = { 0 };
	struct gpu_type gpu;

	mo_desc_init(&gpu_type_desc, &gpu);
	if (strspn(name, "0123456789") == strlen(name))
		errors_at(errors, place(root, "cluster.gpu"), "did you mean 'gpus'?",
			  "cluster.gpu: '%s' is no type of GPU; how many there are is cluster.gpus",
			  name);
	else if (gpu_type_load(name, &gpu, &err) < 0)
		errors_at(errors, place(root, "cluster.gpu"), err.hint, "cluster.gpu: %s",
			  mo_error_text(&err, -EINVAL));
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_error_done(&err);
}

/* A file that was named by mistake: one word about it says more than one about each of its
 * lines. */
static bool no_recipe(const struct ynode *root)
{
	static const char *const keys[] = { "recipe", "name", "engine", "cluster" };

	for (size_t i = 0; i < root->n; i++)
		if (mo_enum_parse(keys, ELEMENTSOF(keys), root->items[i].key->text) >= 0 ||
		    mo_near_miss(root->items[i].key->text, keys, ELEMENTSOF(keys)))
			return false;
	return true;
}

/* Primus' own file: its modules, or another file that has them. */
static bool experiment_of_primus(const struct ynode *root)
{
	const struct ynode *modules = ynode_get(root, "modules");

	for (size_t i = 0; modules && modules->kind == YAML_MAP && i < modules->n; i++)
		if (ynode_get(modules->items[i].value, "framework"))
			return true;
	return ynode_get(root, "extends");
}

#define TOML_LOOK (8 << 10) /* in so many bytes a TOML shows what it is */

/* torchtitan's own file: no YAML, and it has a table. The text ends at n, with no NUL behind it. */
static bool is_toml(const char *text, size_t n)
{
	size_t len = MO_MIN(n, TOML_LOOK);
	int64_t line = 1;

	while (len < n && len > 0 && text[len - 1] != '\n')
		len--;
	if (!len)
		return false;
	_cleanup_(mo_freep) char *head = mo_strndup(text, len);
	_cleanup_(config_value_freep) struct config_value *v =
		config_toml(head, len, (struct config_place){ -1, 1, -1 }, &line, NULL);
	bool table = false;

	for (size_t i = 0; v && i < v->n; i++)
		table |= v->items[i].value->kind == CONFIG_MAP;
	return table;
}

/* A file of an engine that was given in a recipe's place: one line says what to do with it. */
static int not_read(const char *text, size_t n, struct recipe_errors *errors)
{
	if (is_toml(text, n)) {
		for (size_t i = 0; i < errors->n; i++)
			mo_error_done(&errors->items[i]);
		errors->n = 0;
		errors_place(errors, 1, 1, NULL,
			     "a TOML, which is a file of torchtitan and no recipe: moectl init "
			     "FILE makes a recipe of it");
	}
	return recipe_errors_finish(errors);
}

static void read_tree(struct ynode *root, struct recipe *r, struct engine *e, struct rules *rules)
{
	struct reader reader = recipe_reader(r, rules->errors);

	if (no_recipe(root) && experiment_of_primus(root)) {
		errors_at(rules->errors, root, NULL,
			  "an experiment of Primus: moectl init FILE makes a recipe of it");
		return;
	}
	if (no_recipe(root)) {
		errors_at(rules->errors, root, "is it the file that was meant?",
			  root->n ? "this is no recipe: it has none of the keys recipe, name, "
				    "engine and cluster"
				  : "this is no recipe: it is empty");
		return;
	}
	left_graft(root, rules->errors);
	schema_defaults(&reader, "");
	schema_read(&reader, "", root);
	if (r->engine.kind)
		load_engine(root, r, e, rules->errors);
	if (r->engine.kind && !rules->errors->n)
		read_metrics(root, r, e, rules->errors);
	args_numbers(root, e, r);
	if (r->gpu)
		load_gpu(root, r->gpu, rules->errors);
	/* Rules between keys make sense only when each key does. */
	if (rules->errors->n)
		return;
	left_find(root, e, r);
	left_own(root, e, r);
	engine_plan_apply(e, r);
	resolve(r, e);
	rules->errors->retained = rules->errors->keep;
	rules_check(rules);
	layout_apply(r, e);
	mo_desc_free(&engine_checks_desc, e->checks);
	e->checks = NULL;
}

int recipe_parse(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
		 struct recipe *ret, struct engine *ret_engine, char ***ret_warnings,
		 size_t *n_warnings, struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = recipe_tree(text, n, sets, n_sets, errors);
	struct recipe r;
	struct engine e;
	struct rules rules = { .root = root,
			       .recipe = &r,
			       .engine = &e,
			       .errors = errors,
			       .warnings = ret_warnings,
			       .n_warnings = n_warnings };

	if (!root)
		return not_read(text, n, errors);
	mo_desc_init(&recipe_desc, &r);
	mo_desc_init(&engine_desc, &e);
	read_tree(root, &r, &e, &rules);
	int result = recipe_errors_finish(errors);

	if (result < 0 && !errors->retained) {
		mo_desc_done(&recipe_desc, &r);
		mo_desc_done(&engine_desc, &e);
		return result;
	}
	mo_desc_done(&recipe_desc, ret);
	*ret = r;
	if (ret_engine) {
		mo_desc_done(&engine_desc, ret_engine);
		*ret_engine = e;
	} else
		mo_desc_done(&engine_desc, &e);
	return result;
}

int recipe_traits_renew(struct recipe *r, struct mo_error *err)
{
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	int k = engine_load_for(r, &e, err);

	if (k == 0)
		engine_plan_apply(&e, r);
	mo_desc_done(&engine_desc, &e);
	return k;
}
