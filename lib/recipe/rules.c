/* Rules between keys: sharding against GPUs, experts, layers, heads and batch; what checkpoints
 * need; what an engine needs. Every error stands at the guilty value. */
#include "lib/recipe/rules.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/env_names.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/env_file.h"
#include "lib/recipe/rules_batch.h"
#include "lib/recipe/rules_container.h"
#include "lib/recipe/rules_engine.h"
#include "lib/recipe/rules_model.h"
#include "lib/recipe/rules_saves.h"
#include "lib/recipe/rules_shell.h"
#include "lib/recipe/rules_skip.h"
#include "lib/recipe/rules_world.h"

/* The planner chooses from a model, a batch and a kind of GPU; without a model all GPUs are
 * data-parallel. */
static void check_auto(struct rules *k)
{
	const struct recipe *r = k->recipe;
	/* an engine that has no flag for the batch takes a step of one micro-batch of every rank */
	bool stated = !k->engine->n_flags || rules_tells(k->engine, "batch.global");
	const char *batch = r->global_batch != MO_NONE ? NULL
			    : stated                   ? "batch.global"
			    : r->micro == MO_NONE      ? "batch.micro"
						       : NULL,
		   *missing = batch               ? batch
			      : r->seq == MO_NONE ? "batch.seq"
			      : !r->gpu           ? "cluster.gpu"
						  : NULL;

	if (r->parallelism.automatic && r->model && missing)
		errors_at(k->errors, PLACE(k, "parallelism"),
			  stated ? NULL
				 : "a step is then one micro-batch of every rank, because the "
				   "engine "
				   "has no setting for batch.global",
			  "parallelism: auto needs %s to choose the sharding: give it, or the "
			  "sizes (tp, pp, ep, ...)",
			  missing);
	const struct ynode *asked = ynode_find(k->root, "parallelism");

	if (!r->model && asked && asked->kind == YAML_SCALAR && !ynode_is_null(asked))
		rules_warn(k, asked, "parallelism: auto: there is no model to choose by: %s%s%s",
			   recipe_leaves(r, "parallelism.tp") ? "the " : "",
			   recipe_leaves(r, "parallelism.tp") ? engine_files_word(k->engine) : "",
			   recipe_leaves(r, "parallelism.tp") ? "'s own sharding stands"
							      : "all GPUs are data-parallel");
	if (r->checkpoint.automatic)
		rules_warn(k, PLACE(k, "checkpoint.every"),
			   "checkpoint.every: auto begins with %lld iterations, because there is "
			   "no %s to estimate the interval by; it follows measured saves from the "
			   "next attempt on",
			   LL(r->checkpoint.every), r->model ? missing : "model");
}

MO_DEFINE_DONE(gpu_type)

/* A precision that the GPU has no units for may run slowly, or fail on its first step; which of
 * the two is the engine's to know. */
static void check_precision(struct rules *k)
{
	const struct recipe *r = k->recipe;
	_cleanup_(gpu_type_done) struct gpu_type gpu;

	mo_desc_init(&gpu_type_desc, &gpu);
	if (!r->gpu || !r->precision || gpu_type_load(r->gpu, &gpu, NULL) < 0 ||
	    gpu_peak_tflops(&gpu, r->precision) != MO_NONE_F)
		return;
	rules_warn(k, PLACE(k, "precision", "cluster.gpu"),
		   "precision: %s: %s has none by the catalogue: the job may fail on its first "
		   "step, and nothing is planned; use %s",
		   r->precision, r->gpu,
		   gpu.fp8_tflops != MO_NONE_F ? "fp8, bf16 or another cluster.gpu"
					       : "bf16 or another cluster.gpu");
}

/* The libraries cut off what a field cannot hold, or take their default, without a word. */
static void check_env_limit(struct rules *k, const struct env_limits *limits, const char *name,
			    const struct ynode *value)
{
	const struct env_limit *limit = env_limit(limits, name);
	int64_t n;

	if (!limit || !value->text[0] || mo_parse_i64(value->text, limit->min, limit->max, &n) == 0)
		return;
	errors_at(k->errors, value, NULL,
		  "env.%s: expected a whole number from %lld to %lld, got '%.60s': %s", name,
		  LL(limit->min), LL(limit->max), value->text, limit->reason);
}

static void check_env(struct rules *k)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(env_limits_done) struct env_limits limits = { 0 };
	const struct ynode *env = ynode_get(k->root, "env");

	if (env && env->n > 0 && env_limits_read(&limits, &err) < 0)
		errors_at(k->errors, env, err.hint, "env: %s", err.text);
	for (size_t i = 0; env && env->kind == YAML_MAP && i < env->n; i++) {
		const struct ynode *key = env->items[i].key, *value = env->items[i].value;

		if (mo_env_launch_name(key->text))
			errors_at(k->errors, key,
				  mo_env_visibility(key->text)
					  ? "choose the number of GPUs with cluster.gpus, and the "
					    "GPUs that a node lends in its agent.yaml"
					  : NULL,
				  "env: %s is set by the launcher and cannot be overridden: remove "
				  "it%s",
				  key->text,
				  mo_env_visibility(key->text)
					  ? "; of the variables that hide GPUs exactly one may be "
					    "set, because two of them filter twice"
					  : "");
		if (value->kind == YAML_SCALAR)
			check_env_limit(k, &limits, key->text, value);
		if (mo_streq(key->text, "HIP_FORCE_DEV_KERNARG") && value->kind == YAML_SCALAR &&
		    mo_streq(value->text, "1"))
			rules_warn(k, value,
				   "env.HIP_FORCE_DEV_KERNARG: kernel arguments then lie in VRAM, "
				   "HSA_KERNARG_POOL_SIZE bytes (12582912 unless the recipe says "
				   "otherwise) for each stream");
	}
}

static void check_nodes(struct rules *k, const char *path)
{
	const struct ynode *list = ynode_find(k->root, path);

	for (size_t i = 0; list && list->kind == YAML_LIST && i < list->n; i++) {
		const struct ynode *v = list->items[i].value;

		if (v->kind == YAML_SCALAR && !ynode_is_null(v) && !mo_name_valid(v->text))
			errors_at(k->errors, v, NULL, "%s: '%.60s' is no node name", path, v->text);
	}
}

static bool is_like_id(const char *name)
{
	return name && mo_starts_with(name, "j-") && name[2] &&
	       strspn(name + 2, "0123456789") == strlen(name + 2);
}

static void check_rest(struct rules *k)
{
	const struct recipe *r = k->recipe;

	check_nodes(k, "cluster.nodes");
	check_nodes(k, "cluster.exclude");
	if (is_like_id(r->name))
		errors_at(k->errors, PLACE(k, "name"), NULL,
			  "name: '%s' has the form of a job's id, so moectl would look for another "
			  "job: choose another name",
			  r->name);
	if (!ynode_is_null(ynode_find(k->root, "recovery.lease")) &&
	    mo_streq(r->on_node_loss, "wait"))
		rules_warn(k, PLACE(k, "recovery.lease"),
			   "recovery.lease: has no effect with on_node_loss: wait");
	if (mo_streq(r->straggler, "drain") && !r->checkpoint.dir)
		rules_warn(k, PLACE(k, "recovery.straggler"),
			   "recovery.straggler: drain has no effect without checkpoint.dir: a job "
			   "moves at a checkpoint");
}

/* Sizes that only the engine's experiment says: without it nothing can be said of them, and
 * nothing false is. */
static void check_unread(struct rules *k)
{
	_cleanup_(mo_buf_done) struct mo_buf sizes = { 0 };

	for (size_t i = 0; i < k->recipe->n_left; i++)
		if (mo_starts_with(k->recipe->left[i], "parallelism.") &&
		    !ynode_find(k->root, k->recipe->left[i]))
			mo_buf_printf(&sizes, "%s%s", sizes.len ? ", " : "",
				      k->recipe->left[i] + strlen("parallelism."));
	if (k->recipe->experiment_hash) { /* -1, what is left, is no number */
		rules_warn(k, PLACE(k, "engine.entry", "engine"),
			   "parallelism: of %s the %s gives no number: the engine divides the GPUs "
			   "itself, and what depends on it is neither checked nor planned; give it "
			   "in the recipe's parallelism",
			   sizes.data, engine_files_word(k->engine));
		return;
	}
	_cleanup_(mo_freep) char *path = recipe_entry_path(k->recipe);

	rules_warn(k, PLACE(k, "parallelism", "engine.entry", "engine"),
		   "parallelism: %s are left to the %s, which was not read here%s%s%s: the engine "
		   "takes its values, and nothing is checked or planned by them; `moectl validate` "
		   "reads it where the files are",
		   sizes.data, engine_files_word(k->engine), path ? " (" : "", path ? path : "",
		   path ? ")" : "");
}

/* Without etp the experts are split as tp says: where tp itself is wrong, what follows of it for
 * etp is no second error. */
static void drop_consequences(struct rules *k)
{
	const struct ynode *etp = ynode_find(k->root, "parallelism.etp");
	_cleanup_(mo_freep) char *of_etp = NULL;
	struct recipe_errors *e = k->errors;
	bool tp = false;
	size_t retained = 0;

	if (!etp || !etp->left || !etp->set || !mo_starts_with(etp->set, "the command"))
		return;
	of_etp = mo_printf("%s: parallelism.etp: ", etp->set);
	for (size_t i = 0; i < e->n; i++)
		tp |= strstr(e->items[i].text, "parallelism.tp: ") != NULL;
	for (size_t i = 0; tp && i < e->n; i++) {
		if (mo_starts_with(e->items[i].text, of_etp))
			mo_error_done(&e->items[i]);
		else
			e->items[retained++] = e->items[i];
	}
	e->n = tp ? retained : e->n;
}

void rules_check(struct rules *k)
{
	bool world_ok = !k->recipe->unread && rules_world(k);

	rules_model(k);
	if (world_ok && !k->errors->n) {
		rules_experts(k);
		rules_pipeline(k);
		rules_width(k);
	}
	/* With other sizes dp is another: what does not go with this one may go with that. */
	rules_batch_sizes(k, world_ok && !k->errors->n);
	rules_batch(k);
	if (k->recipe->unread)
		check_unread(k);
	check_auto(k);
	check_precision(k);
	rules_saves(k);
	rules_container(k);
	check_env(k);
	rules_shell(k);
	check_rest(k);
	rules_engine(k);
	rules_skip(k);
	drop_consequences(k);
}
