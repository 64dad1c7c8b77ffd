/* What a recipe switches on, as far as it changes time or memory: its features, the engine's own flags in engine.args, and the kind of engine. Callers: plan.c, search.c. */
#include <string.h>

#include "lib/base/parse.h"
#include "lib/plan/parts.h"

/* What the engine is told by this flag in engine.args, "true" without a value; NULL = nothing. Dashes and underscores are alike. */
static const char *flag(const struct recipe_engine *e, const char *name)
{
	for (size_t i = 0; i < e->n_args; i++) {
		const char *key = e->args[i].key ? e->args[i].key + strspn(e->args[i].key, "-") : "", *n = name;

		while (*key && *n && (*key == '-' ? '_' : *key) == *n) {
			key++;
			n++;
		}
		if (!*key && !*n)
			return e->args[i].value ? e->args[i].value : "true";
	}
	return NULL;
}

/* Bytes of a type that the precision-aware optimizer keeps, FP32 where nothing is said. */
static int64_t type_bytes(const char *type)
{
	return mo_streq(type, "bf16") || mo_streq(type, "fp16") ? 2 : mo_streq(type, "fp8") ? 1 : 4;
}

/* --use-precision-aware-optimizer alone keeps half of each master weight; types of gradients and moments are told beside it. */
static void optimizer_types(const struct recipe_engine *e, struct shape_features *f)
{
	f->small_master = mo_streq(flag(e, "use_precision_aware_optimizer"), "true");
	if (!f->small_master)
		return;
	f->grad_bytes = type_bytes(flag(e, "main_grads_dtype"));
	f->moment_bytes = type_bytes(flag(e, "exp_avg_dtype")) + type_bytes(flag(e, "exp_avg_sq_dtype"));
}

/* Megatron's own flags, where the recipe has no recompute: block recomputes the first layers of each virtual stage, uniform all. */
const char *shape_recompute_of(const struct recipe *r)
{
	const char *given = flag(&r->engine, "recompute_granularity");

	return r->recompute ? r->recompute : mo_streq(given, "full") || mo_streq(given, "selective") ? given : "none";
}

static int64_t recompute_block(const struct recipe *r)
{
	const char *layers = flag(&r->engine, "recompute_num_layers");
	int64_t n;

	return !r->recompute && mo_streq(flag(&r->engine, "recompute_method"), "block") && layers && mo_parse_i64(layers, 1, MO_RANKS_MAX, &n) == 0 ? n * r->parallelism.vpp : 0;
}

struct shape_features shape_features_of(const struct recipe *r)
{
	struct shape_features f = { .bound = r->bind.cpu && !mo_streq(r->bind.cpu, "none"), .eager = mo_streq(r->engine.kind, "torchtitan") || mo_streq(r->engine.kind, "deepspeed") };

	optimizer_types(&r->engine, &f);
	f.recompute_layers = recompute_block(r);
	f.compiled = mo_streq(flag(&r->engine, "compile.enable"), "true");
	f.async_tp = mo_streq(flag(&r->engine, "compile.enable_async_tensor_parallel"), "true");
	for (size_t i = 0; i < r->n_features; i++) {
		const char *key = r->features[i].key, *value = r->features[i].value;
		bool on = mo_streq(value, "true");

		if (mo_streq(key, "a2a"))
			f.deepep = mo_streq(value, "deepep");
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
