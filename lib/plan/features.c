/* What a recipe switches on, as far as it changes time or memory: the traits of its engine
 * (lib/model/traits.h), and its features. Callers: plan.c, search.c. */
#include "lib/plan/features.h"

#include <string.h>

#include "lib/model/traits.h"

static const struct engine_traits *traits_of(const struct recipe *r)
{
	/* of a record of an older version: nothing is known */
	static const struct engine_traits nothing = {
		.grad_bytes = MO_NONE,
		.moment_bytes = MO_NONE,
		.moment2_bytes = MO_NONE,
		.shard_bytes = MO_NONE,
		.sync_free = MO_NONE,
		.recompute_first = MO_NONE,
		.recompute_chunk = MO_NONE,
		.offload_layers = MO_NONE,
		.pass_batch = MO_NONE,
		.attention_dropout = MO_NONE_F,
		.optimizer_offload = MO_NONE_F,
	};

	return r->engine.traits ? r->engine.traits : &nothing;
}

static int64_t number(int64_t n)
{
	return n == MO_NONE ? 0 : n;
}

static int64_t bits(const char *trait, char *const *words, size_t n)
{
	return trait_bits(trait_find(trait), words, n);
}

const char *plan_recompute_given(const struct recipe *r)
{
	return r->recompute ? r->recompute : traits_of(r)->recompute;
}

const char *shape_schedule_stated(const struct recipe *r)
{
	return traits_of(r)->schedule;
}

int64_t shape_pass_batch(const struct recipe *r)
{
	return recipe_leaves(r, "batch.micro") ? number(traits_of(r)->pass_batch) : 0;
}

const char *shape_recompute_of(const struct recipe *r)
{
	const char *given = plan_recompute_given(r), *untold = traits_of(r)->recompute_untold;

	return given ? given : untold ? untold : "none";
}

/* Which layers the engine recomputes is its own affair only while the recipe says nothing of it. */
static void recomputed(const struct recipe *r, const struct engine_traits *t,
		       struct shape_features *f)
{
	if (!r->recompute || recipe_leaves(r, "recompute")) {
		f->recompute_layers = number(t->recompute_first);
		f->recompute_chunk = number(t->recompute_chunk);
	}
	f->recompute_ids = t->recompute_ids;
	f->recompute_modules =
		bits("recompute_modules", t->recompute_modules, t->n_recompute_modules);
	f->remat_saved = bits("remat_saved", t->remat_saved, t->n_remat_saved);
}

static int64_t graphs_of(const struct engine_traits *t)
{
	int64_t set = bits("graph_modules", t->graph_modules, t->n_graph_modules);

	return !t->graphs ? 0 : set ? set : GRAPH_ALL;
}

/* An allocator's variable of the recipe's own wins. */
static bool expandable(const struct recipe *r, bool by_engine)
{
	bool ret = by_engine;

	for (size_t i = 0; i < r->n_env; i++)
		if (r->env[i].value && strstr(r->env[i].name, "ALLOC_CONF"))
			ret = strstr(r->env[i].value, "expandable_segments:True");
	return ret;
}

static struct shape_features by_traits(const struct recipe *r, const struct engine_traits *t)
{
	struct shape_features f = {
		.eager = t->eager,
		.compiled = t->compiled,
		.xla = t->xla,
		.expandable = expandable(r, t->expandable),
		.deepep = t->deepep,
		.overlap_a2a = t->overlap_a2a,
		.async_tp = t->async_tp,
		.fused_loss = t->fused_loss,
		.fused_experts = t->fused_experts,
		.expert_launches = t->expert_launches,
		.narrow_attention = t->narrow_attention,
		.narrow_gather = t->narrow_gather,
		.narrow_activation = t->narrow_activation,
		.cached_weights = t->cached_weights,
		.small_master = t->small_master,
		.no_sequence_parallel = t->no_sequence_parallel,
		.no_dropout = t->attention_dropout == 0,
		.adapters = t->adapters,
		.fp4 = t->fp4,
		.graphs = graphs_of(t),
		.grad_bytes = number(t->grad_bytes),
		.moment_bytes = number(t->moment_bytes) + number(t->moment2_bytes),
		.shard_bytes = number(t->shard_bytes),
		.sync_free = number(t->sync_free),
		.offload_layers = number(t->offload_layers),
		.offload_modules =
			bits("offload_modules", t->offload_modules, t->n_offload_modules),
		.optimizer_offload = t->optimizer_offload == MO_NONE_F ? 0 : t->optimizer_offload,
		.bound = r->bind.cpu && !mo_streq(r->bind.cpu, "none"),
	};

	recomputed(r, t, &f);
	return f;
}

struct shape_features shape_features_of(const struct recipe *r)
{
	struct shape_features f = by_traits(r, traits_of(r));

	for (size_t i = 0; i < r->n_features; i++) {
		const char *key = r->features[i].key, *value = r->features[i].value;
		bool on = mo_streq(value, "true");

		if (mo_streq(key, "a2a"))
			/* the same exchange by another transport */
			f.deepep = mo_streq(value, "deepep") || mo_streq(value, "uccl");
		else if (mo_streq(key, "overlap_a2a"))
			f.overlap_a2a = on;
		else if (mo_streq(key, "recompute_layers") && value && strpbrk(value, "0123456789"))
			f.recompute_ids = value;
		else if (mo_streq(key, "grouped_gemm"))
			f.expert_launches = mo_streq(value, "legacy");
		else if (mo_streq(key, "loss_fusion"))
			f.fused_loss = on;
		else if (mo_streq(key, "sync_free") && value && *value >= '0' && *value <= '3')
			f.sync_free = *value - '0';
	}
	return f;
}
