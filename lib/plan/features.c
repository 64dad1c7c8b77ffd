/* What a recipe switches on, as far as it changes time or memory: its features, the engine's own flags in engine.args, and the kind of engine. Callers: plan.c, search.c. */
#include <string.h>

#include "lib/base/parse.h"
#include "lib/plan/parts.h"

/* Is the word this flag? Dashes and underscores are alike. *ret_value: what stands behind '=', NULL without. */
static bool names(const char *word, const char *name, const char **ret_value)
{
	const char *key = word ? word + strspn(word, "-") : "";

	while (*key && *name && (*key == '-' ? '_' : *key) == *name) {
		key++;
		name++;
	}
	*ret_value = *key == '=' ? key + 1 : NULL;
	return !*name && (!*key || *key == '=');
}

/* What the engine is told by this flag in engine.args, "true" without a value, or by its own configuration; NULL = nothing. A list has a flag's value behind it as a word of its own. The last one counts. */
static const char *flag(const struct recipe_engine *e, const char *name)
{
	const char *ret = NULL, *value;

	for (size_t i = 0; i < e->n_args; i++) {
		const char *next = e->args_list && i + 1 < e->n_args ? e->args[i + 1].key : NULL;

		if (names(e->args[i].key, name, &value))
			ret = value ? value : e->args[i].value ? e->args[i].value : next && *next != '-' ? next : "true";
	}
	for (size_t i = 0; i < e->n_own && !ret; i++)
		if (names(e->own[i].key, name, &value))
			ret = e->own[i].value;
	return ret;
}

const char *shape_flag(const struct recipe_engine *e, const char *name)
{
	return flag(e, name);
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

static bool is_maxtext(const struct recipe_engine *e)
{
	return mo_starts_with(e->kind, "maxtext") || mo_streq(e->kind, "primus-maxtext");
}

const char *plan_recompute_given(const struct recipe *r)
{
	static const char *const levels[] = { "none", "selective", "full" };
	const char *megatron = flag(&r->engine, "recompute_granularity"), *torchtitan = flag(&r->engine, "activation_checkpoint.mode"), *told = megatron ? megatron : torchtitan;

	if (r->recompute)
		return r->recompute;
	if (is_maxtext(&r->engine) && flag(&r->engine, "remat_policy")) {
		told = flag(&r->engine, "remat_policy");
		return mo_streq(told, "full") || mo_streq(told, "none") ? told : "selective";
	}
	for (size_t i = 0; told && i < ELEMENTSOF(levels); i++)
		if (strcasecmp(told, levels[i]) == 0)
			return levels[i];
	return mo_streq(flag(&r->engine, "recompute_activations"), "true") ? "selective" : NULL;
}

/* Primus' pipeline and torchtitan's by their names for the schedules that we have. */
const char *shape_schedule_told(const struct recipe *r)
{
	static const struct { const char *told, *schedule; } names[] = {
		{ "zero-bubble", "zb1p" }, { "zbv-formatted", "zbv" }, { "v-half", "v-half" }, { "v-min", "v-min" }, { "ZBVZeroBubble", "zbv" }, { "DualPipeV", "dualpipe" },
	};
	const char *primus = mo_streq(flag(&r->engine, "patch_primus_pipeline"), "true") ? flag(&r->engine, "pp_algorithm") : NULL, *told = primus ? primus : flag(&r->engine, "parallelism.pipeline_parallel_schedule");

	for (size_t i = 0; told && i < ELEMENTSOF(names); i++)
		if (mo_streq(told, names[i].told))
			return names[i].schedule;
	return NULL;
}

const char *shape_recompute_of(const struct recipe *r)
{
	const char *given = plan_recompute_given(r);

	return given ? given : is_maxtext(&r->engine) ? "full" : "none";       /* each engine's own default */
}

/* Megatron's block recomputes the first layers of each virtual stage, uniform all, so many at a time. 0: not told. */
static int64_t recompute_layers(const struct recipe *r, const char *method)
{
	const char *layers = flag(&r->engine, "recompute_num_layers");
	int64_t n;

	return (!r->recompute || recipe_leaves(r, "recompute")) && mo_streq(flag(&r->engine, "recompute_method"), method) && layers && mo_parse_i64(layers, 1, MO_RANKS_MAX, &n) == 0 ? n : 0;
}

struct named { const char *name; int64_t bit; };

/* The bits of those names that a list of words has, whatever is between them. */
static int64_t bits_of(const char *list, const struct named *names, size_t n_names)
{
	int64_t set = 0;

	for (const char *at = list ? list : ""; *at;) {
		size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");

		for (size_t i = 0; i < n_names; i++)
			set |= n == strlen(names[i].name) && strncmp(at, names[i].name, n) == 0 ? names[i].bit : 0;
		at += MO_MAX(n, (size_t)1);
	}
	return set;
}

/* What Megatron's flags recompute and put in the host's memory. */
static void modules_of(const struct recipe_engine *e, struct shape_features *f)
{
	static const struct named recompute[] = {
		{ "core_attn", MODULE_CORE_ATTENTION }, { "moe_act", MODULE_EXPERT_ACTIVATION }, { "layernorm", MODULE_NORMS }, { "mla_up_proj", MODULE_MLA_UP },
		{ "mlp", MODULE_MLP }, { "moe", MODULE_MOE }, { "shared_experts", MODULE_SHARED },
	}, offload[] = {
		{ "attn_norm", OFFLOAD_ATTN_NORM }, { "qkv_linear", OFFLOAD_QKV }, { "core_attn", OFFLOAD_CORE_ATTENTION }, { "attn_proj", OFFLOAD_PROJECTION }, { "mlp_norm", OFFLOAD_MLP_NORM },
		{ "expert_fc1", OFFLOAD_EXPERT_UP }, { "moe_act", OFFLOAD_EXPERT_ACTIVATION }, { "fused_group_mlp", OFFLOAD_EXPERT_UP | OFFLOAD_EXPERT_ACTIVATION },
	};

	f->recompute_modules = bits_of(flag(e, "recompute_modules"), recompute, ELEMENTSOF(recompute));
	if (mo_streq(flag(e, "fine_grained_activation_offloading"), "true"))
		f->offload_modules = bits_of(flag(e, "offload_modules"), offload, ELEMENTSOF(offload));
}

static bool told(const struct recipe_engine *e, const char *name)
{
	return mo_streq(flag(e, name), "true");
}

/* The features of a recipe, by the names that Primus has for them: where its own configuration says them. */
static void primus_features(const struct recipe_engine *e, struct shape_features *f)
{
	const char *ids = flag(e, "recompute_layer_ids"), *stage = flag(e, "turbo_sync_free_moe_stage");

	f->deepep |= told(e, "use_turbo_deepep");
	f->expert_launches = told(e, "moe_use_legacy_grouped_gemm");
	f->fused_loss |= told(e, "cross_entropy_loss_fusion");
	if (ids && strpbrk(ids, "0123456789"))
		f->recompute_ids = ids;
	if (stage && *stage >= '0' && *stage <= '3')
		f->sync_free = *stage - '0';
}

/* What Megatron replays from graphs: modules of each layer, by the names of today and of before; without a list, and with the full iteration, all. */
static int64_t graphs_of(const struct recipe_engine *e)
{
	static const struct named parts[] = { { "attn", GRAPH_ATTENTION }, { "mlp", GRAPH_MLP }, { "moe", GRAPH_EXPERTS }, { "moe_router", GRAPH_ROUTER }, { "moe_preprocess", GRAPH_PREPROCESS } };
	const char *how = flag(e, "cuda_graph_impl"), *now = flag(e, "cuda_graph_modules"), *list = now ? now : flag(e, "cuda_graph_scope");
	int64_t set = mo_streq(how, "full_iteration") ? 0 : bits_of(list, parts, ELEMENTSOF(parts));

	if (!told(e, "enable_cuda_graph") && !told(e, "external_cuda_graph") && (!how || mo_streq(how, "none")))
		return 0;
	return set ? set : GRAPH_ALL;
}

/* What the engine's own flags make faster. */
static void faster_by(const struct recipe_engine *e, struct shape_features *f)
{
	const char *dispatcher = flag(e, "moe_flex_dispatcher_backend");

	f->graphs = graphs_of(e);
	f->compiled = told(e, "compile.enable");
	f->async_tp = told(e, "compile.enable_async_tensor_parallel") ||
		      told(e, "parallelism.enable_async_tensor_parallel") || told(e, "tp_comm_overlap");
	f->overlap_a2a = told(e, "overlap_moe_expert_parallel_comm");
	f->deepep = mo_streq(flag(e, "moe_token_dispatcher_type"), "flex") && (told(e, "moe_enable_deepep") || mo_streq(dispatcher, "deepep") || mo_streq(dispatcher, "hybridep"));
	f->fused_experts = told(e, "use_transformer_engine_op_fuser");
	f->narrow_attention = told(e, "fp8_dot_product_attention");
	f->narrow_gather = told(e, "fp8_param_gather") || told(e, "quantize.linear.float8.enable_fsdp_float8_all_gather");
}

/* What MaxText's policy saves; custom names each tensor. */
static int64_t saved_of(const struct recipe_engine *e, const char *policy)
{
	static const struct named policies[] = {
		{ "minimal_with_context", REMAT_MINIMAL | REMAT_CONTEXT }, { "minimal_with_context_and_quantization", REMAT_MINIMAL | REMAT_CONTEXT }, { "minimal_flash", REMAT_MINIMAL | REMAT_CONTEXT },
		{ "minimal", REMAT_MINIMAL }, { "minimal_with_quantization", REMAT_MINIMAL }, { "save_dot_with_context_except_mlp", REMAT_QKV | REMAT_OUT | REMAT_CONTEXT },
		{ "save_dot_except_mlpwi", REMAT_QKV | REMAT_OUT | REMAT_DOWN }, { "save_dot_except_mlp", REMAT_QKV | REMAT_OUT }, { "save_qkv_proj", REMAT_QKV }, { "save_out_proj", REMAT_OUT },
	}, tensors[] = {
		{ "query_proj", REMAT_QKV }, { "qkv_proj", REMAT_QKV }, { "out_proj", REMAT_OUT }, { "context", REMAT_CONTEXT }, { "mlpwi", REMAT_UP }, { "mlpwi_0", REMAT_UP }, { "moe_mlpwi_0", REMAT_UP },
		{ "mlpwo", REMAT_DOWN }, { "moe_mlpwo", REMAT_DOWN },
	};
	int64_t saved = bits_of(policy, policies, ELEMENTSOF(policies));

	for (size_t i = 0; i < ELEMENTSOF(tensors) && mo_streq(policy, "custom"); i++)
		saved |= mo_streq(flag(e, tensors[i].name), "device") ? tensors[i].bit : 0;
	return saved;
}

/* What is trained as nobody counts it. What the recipe says of the precision replaces what the files say. */
static void uncounted(const struct recipe *r, struct shape_features *f)
{
	struct recipe_engine told = r->engine;

	f->adapters = mo_streq(flag(&r->engine, "lora.enabled"), "true");
	if (!recipe_leaves(r, "precision"))
		told.n_own = 0;
	const char *fp4 = flag(&told, "fp4");

	f->fp4 = fp4 && !mo_streq(fp4, "None") && !mo_streq(fp4, "null");
}

/* FSDP of PyTorch and MaxText shard the master weights themselves, in FP32 unless MaxText is told otherwise; its moments and gradients have their type. */
static void kept_types(const struct recipe *r, struct shape_features *f)
{
	const struct recipe_engine *e = &r->engine;
	bool titan = mo_starts_with(e->kind, "torchtitan") || mo_streq(e->kind, "primus-torchtitan"), maxtext = is_maxtext(e);
	double share;
	const char *part = flag(e, "optimizer_offload_fraction"), *dropout = flag(e, "attention_dropout"), *layers = flag(e, "cpu_offloading_num_layers"), *remat = flag(e, "remat_policy"), *parts = flag(e, "compile.components");

	modules_of(e, f);
	uncounted(r, f);
	f->no_dropout = dropout && mo_parse_double(dropout, &share) == 0 && share == 0;
	f->no_sequence_parallel = mo_streq(flag(e, "sequence_parallel"), "false");
	f->narrow_activation = mo_streq(flag(e, "activation_func_fp8_input_store"), "true");
	f->cached_weights = (mo_streq(e->kind, "megatron-lm") || mo_streq(e->kind, "primus-megatron")) && !mo_streq(flag(e, "fp8_param_gather"), "true") && !mo_streq(flag(e, "disable_parameter_transpose_cache"), "true");
	if (mo_streq(flag(e, "optimizer_cpu_offload"), "true") && (!part || mo_parse_double(part, &f->optimizer_offload) < 0 || !(f->optimizer_offload >= 0 && f->optimizer_offload <= 1)))
		f->optimizer_offload = 1;
	if (!layers || mo_parse_i64(layers, 0, MO_RANKS_MAX, &f->offload_layers) < 0)
		f->offload_layers = 0;
	if (mo_streq(flag(e, "grad_reduce_in_bf16"), "true") && !f->small_master)
		f->grad_bytes = 2;
	if (titan || maxtext)
		f->shard_bytes = 4;
	if (titan && mo_streq(flag(e, "compile.enable"), "true"))
		f->fused_loss = !parts || strstr(parts, "loss");
	f->expandable = mo_starts_with(e->kind, "torchtitan");         /* its engine file says so */
	for (size_t i = 0; i < r->n_env; i++)
		if (r->env[i].value && strstr(r->env[i].name, "ALLOC_CONF"))
			f->expandable = strstr(r->env[i].value, "expandable_segments:True");
	f->xla = maxtext;
	f->remat_saved = maxtext ? saved_of(e, remat ? remat : "minimal") : 0;     /* as recompute selective is told */
	if (maxtext && mo_streq(flag(e, "weight_dtype"), "bfloat16")) {
		f->shard_bytes = f->grad_bytes = 2;
		f->moment_bytes = 4;
	}
}

struct shape_features shape_features_of(const struct recipe *r)
{
	struct shape_features f = { .bound = r->bind.cpu && !mo_streq(r->bind.cpu, "none"), .eager = mo_starts_with(r->engine.kind, "torchtitan") || mo_streq(r->engine.kind, "deepspeed") };

	optimizer_types(&r->engine, &f);
	kept_types(r, &f);
	f.recompute_layers = recompute_layers(r, "block");
	f.recompute_chunk = recompute_layers(r, "uniform");
	faster_by(&r->engine, &f);
	primus_features(&r->engine, &f);
	for (size_t i = 0; i < r->n_features; i++) {
		const char *key = r->features[i].key, *value = r->features[i].value;
		bool on = mo_streq(value, "true");

		if (mo_streq(key, "a2a"))
			f.deepep = mo_streq(value, "deepep") || mo_streq(value, "uccl");    /* the same exchange by another transport */
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
