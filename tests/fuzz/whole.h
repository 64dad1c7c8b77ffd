/* A recipe from its text to what the ranks would be given, as a submit goes: keys, rules, plan,
 * command, environment, launch document. Whatever the text: an end, and no number that is none.
 * Called by fuzz_launch.c with bytes and by tests/unit/cli/test_hostile_values.c with every key of
 * a recipe. */
#pragma once
#include <stdlib.h>
#include <string.h>

#include "agent/core/bind/preview.h"
#include "daemon/core/rules/dryrun.h"
#include "lib/plan/plan.h"
#include "lib/plan/plan_desc.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/engine_words.h"
#include "lib/recipe/env_file.h"
#include "lib/recipe/env_layers.h"
#include "lib/recipe/recipe_file.h"
#include "lib/wire/dryrun.h"
#include "lib/wire/encode.h"

#define SEARCH_MAX 64 /* GPUs and sequences of a search that takes no time */

/* To change one value of. */
static const char *const bases[] = {
	/* what killed the controller: nothing but a batch beside the key */
	"recipe: 1\nname: a\nengine: {kind: command, argv: [x]}\ncluster: {gpus: 8}\n"
	"batch: {micro: 8, global: 1024}\n",
	"recipe: 1\nname: a\n"
	"engine: {kind: command, argv: [x, \"{derived.micro_batches}\", "
	"\"{derived.global_tokens}\"]}\n"
	"model: {layers: 8, hidden: 512, heads: 8, kv_heads: 8, head_dim: 64, ffn: 2048, vocab: "
	"1000, "
	"moe: {experts: 8, topk: 2, ffn: 256}}\n"
	"cluster: {gpus: 8, gpu: mi355x, nic_gbps: 400}\nparallelism: {pp: 2, ep: 2}\n"
	"batch: {seq: 4096, micro: 1, global: 64}\nprecision: bf16\nsteps: 10\n"
	"checkpoint: {dir: /c, every: 5}\n",
	"recipe: 1\nname: a\nengine: {kind: megatron-lm, entry: a.py, workdir: /w}\n"
	"model: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocab: 1000, "
	"mla: {kv_lora: 512, qk_nope: 128, qk_rope: 64, v: 128}}\n"
	"cluster: {gpus: 8, gpu: mi355x}\nparallelism: auto\nbatch: {seq: 128, global: 64}\nsteps: "
	"10\n",
};

static inline void require(bool holds)
{
	if (!holds)
		abort();
}

static inline void spec_of(struct submit *spec)
{
	engine_argv(&spec->engine, &spec->recipe, &spec->argv, &spec->n_argv);
	engine_prepare(&spec->engine, &spec->recipe, &spec->prepare, &spec->n_prepare);
	env_layers(&spec->recipe, &spec->engine, &spec->env, &spec->n_env);
	require(env_profiles(&spec->recipe, &spec->profiles, &spec->n_profiles, NULL) == 0);
}

static inline void plan_of(struct recipe *r, struct mo_buf *b)
{
	const struct plan_options o = { .top = 1 };
	bool search = r->parallelism.automatic;
	struct plan_doc doc;
	struct gpu_type gpu;

	if (!r->gpu || !r->model ||
	    (search && (r->gpus > SEARCH_MAX || r->global_batch > SEARCH_MAX)))
		return;
	mo_desc_init(&plan_doc_desc, &doc);
	mo_desc_init(&gpu_type_desc, &gpu);
	if (gpu_type_load(r->gpu, &gpu, NULL) == 0 && plan_make(r, &gpu, &o, &doc, NULL) == 0) {
		wire_encode(&plan_doc_desc, &doc, b);
		require(!strstr(b->data, "\"NaN\"") && !strstr(b->data, "Infinity\""));
		plan_apply(&doc, r);
		plan_apply_layout(r);
	}
	mo_desc_done(&gpu_type_desc, &gpu);
	mo_desc_done(&plan_doc_desc, &doc);
}

static inline int add_node(void *arg, const struct nodeinfo *info, const struct dryrun_rank *ranks,
			   size_t n, struct mo_error *err)
{
	struct mo_buf *b = arg;

	wire_dryrun_ranks(ranks, n, b->data[b->len - 1] == '[', b);
	return 0;
}

static inline void launch_of(struct submit *spec)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct state empty;
	const struct dryrun_walk walk = {
		.ranks = preview_ranks, .node = add_node, .arg = &b, .to = MO_NONE
	};

	mo_desc_init(&state_desc, &empty);
	if (spec->recipe.gpus <= SEARCH_MAX) {
		spec_of(spec);
		wire_dryrun_head(spec->recipe.name, NULL, spec->engine.resume,
				 spec->engine.n_resume, &b);
		int placed = dryrun_walk(&empty, spec, &walk, NULL);

		if (placed >= 0)
			wire_dryrun_end(dryrun_placed_names[placed], &b);
	}
	mo_desc_done(&state_desc, &empty);
}

static inline void whole(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct submit spec;

	mo_desc_init(&submit_desc, &spec);
	int r = recipe_parse(text, n, sets, n_sets, &spec.recipe, &spec.engine, &spec.warnings,
			     &spec.n_warnings, &errors);

	require((r < 0) == (errors.n > 0));
	if (r == 0) {
		plan_of(&spec.recipe, &b);
		launch_of(&spec);
	}
	mo_desc_done(&submit_desc, &spec);
}
