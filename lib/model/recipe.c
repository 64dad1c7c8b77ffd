/* Descriptions of the recipe. The limits are those of what a document from outside may carry. */
#include "lib/model/recipe.h"

#include "lib/base/buf.h"
#include "lib/model/launch.h"
#include "lib/model/limits.h"

static const struct mo_field kv_fields[] = {
	MO_D(kv, key, MO_STR, "the key"),
	MO_D(kv, value, MO_STR, "its value; null: a bare flag"),
};
const struct mo_desc kv_desc = MO_DESC(kv, kv_fields);

static const struct mo_field moe_fields[] = {
	MO_F(recipe_moe, experts, MO_INT),
	MO_F(recipe_moe, topk, MO_INT),
	MO_F(recipe_moe, ffn, MO_INT),
	MO_F(recipe_moe, shared_ffn, MO_INT),
	MO_F(recipe_moe, dense_layers, MO_INT),
	MO_F(recipe_moe, every, MO_INT, .omit = true),
	MO_F(recipe_moe, groups, MO_INT, .omit = true),
	MO_F(recipe_moe, topk_groups, MO_INT, .omit = true),
};
static const struct mo_desc moe_desc = MO_DESC(recipe_moe, moe_fields);

static const struct mo_field mla_fields[] = {
	MO_F(recipe_mla, q_lora, MO_INT),  MO_F(recipe_mla, kv_lora, MO_INT),
	MO_F(recipe_mla, qk_nope, MO_INT), MO_F(recipe_mla, qk_rope, MO_INT),
	MO_F(recipe_mla, v, MO_INT),
};
static const struct mo_desc mla_desc = MO_DESC(recipe_mla, mla_fields);

static const struct mo_field model_fields[] = {
	MO_F(recipe_model, name, MO_STR),
	MO_F(recipe_model, layers, MO_INT),
	MO_F(recipe_model, hidden, MO_INT),
	MO_F(recipe_model, heads, MO_INT),
	MO_F(recipe_model, kv_heads, MO_INT),
	MO_F(recipe_model, head_dim, MO_INT),
	MO_F(recipe_model, ffn, MO_INT),
	MO_F(recipe_model, vocab, MO_INT),
	MO_F(recipe_model, gated, MO_BOOL),
	MO_F(recipe_model, attention, MO_STR),
	MO_F(recipe_model, mtp, MO_INT),
	MO_F(recipe_model, window, MO_INT),
	MO_F(recipe_model, tied, MO_BOOL),
	MO_F(recipe_model, qk_norm, MO_BOOL),
	MO_F(recipe_model, bias, MO_BOOL),
	MO_F_SUB(recipe_model, moe, MO_OPT, &moe_desc),
	MO_F_SUB(recipe_model, mla, MO_OPT, &mla_desc),
};
const struct mo_desc recipe_model_desc = MO_DESC(recipe_model, model_fields);

static const struct mo_field parallelism_fields[] = {
	MO_F(recipe_parallelism, automatic, MO_BOOL), MO_F(recipe_parallelism, tp, MO_INT),
	MO_F(recipe_parallelism, pp, MO_INT),         MO_F(recipe_parallelism, vpp, MO_INT),
	MO_F(recipe_parallelism, ep, MO_INT),         MO_F(recipe_parallelism, etp, MO_INT),
	MO_F(recipe_parallelism, cp, MO_INT),         MO_F(recipe_parallelism, dp, MO_INT),
	MO_F(recipe_parallelism, sharding, MO_STR),   MO_F(recipe_parallelism, schedule, MO_STR),
	MO_F(recipe_parallelism, given, MO_BOOL),
};
static const struct mo_desc parallelism_desc = MO_DESC(recipe_parallelism, parallelism_fields);

static const struct mo_field env_fields[] = {
	MO_F(recipe_env, name, MO_STR),
	MO_F(recipe_env, value, MO_STR),
	MO_F(recipe_env, file, MO_STR),
};
const struct mo_desc recipe_env_desc = MO_DESC(recipe_env, env_fields);

static const struct mo_field checkpoint_fields[] = {
	MO_F(recipe_checkpoint, dir, MO_STR),
	MO_F(recipe_checkpoint, added, MO_BOOL, .omit = true),
	MO_F(recipe_checkpoint, every, MO_INT),
	MO_F(recipe_checkpoint, automatic, MO_BOOL, .omit = true),
	MO_F(recipe_checkpoint, keep, MO_INT),
	MO_F(recipe_checkpoint, verify, MO_STR),
	MO_F(recipe_checkpoint, resume, MO_INT),
	MO_F(recipe_checkpoint, layout, MO_STR, .omit = true),
	MO_F_LIST(recipe_checkpoint, resume_args, MO_STRS, .omit = true),
};
static const struct mo_desc checkpoint_desc = MO_DESC(recipe_checkpoint, checkpoint_fields);

static const struct mo_field engine_fields[] = {
	MO_F(recipe_engine, kind, MO_STR),
	MO_F(recipe_engine, workdir, MO_STR),
	MO_F(recipe_engine, entry, MO_STR),
	MO_F(recipe_engine, python, MO_STR),
	MO_F(recipe_engine, prepare, MO_STR),
	MO_F_LIST(recipe_engine, prepare_argv, MO_STRS, .omit = true),
	MO_F_LIST(recipe_engine, argv, MO_STRS),
	MO_F_VEC(recipe_engine, args, &kv_desc),
	MO_F(recipe_engine, args_list, MO_BOOL),
	MO_F_LIST(recipe_engine, args_off, MO_STRS, .omit = true),
	MO_F(recipe_engine, strict_args, MO_BOOL),
	MO_F_LIST(recipe_engine, args_unchecked, MO_STRS),
	MO_F_VEC(recipe_engine, own, &kv_desc, .omit = true),
	MO_F_SUB(recipe_engine, traits, MO_OPT, &engine_traits_desc, .omit = true),
};
static const struct mo_desc recipe_engine_desc = MO_DESC(recipe_engine, engine_fields);

static const struct mo_field bind_fields[] = {
	MO_D(recipe_bind, cpu, MO_STR, "numa or none"),
	MO_D(recipe_bind, memory, MO_STR, "preferred, bind, interleave or none"),
	MO_D(recipe_bind, nic, MO_STR, "nearest or none"),
	MO_D(recipe_bind, smt, MO_STR, "auto, one or all"),
	MO_D(recipe_bind, verify, MO_STR, "strict, warn or off"),
	MO_D(recipe_bind, reserve_cores, MO_INT, "cores of each NUMA node left to the system"),
};
const struct mo_desc recipe_bind_desc = MO_DESC(recipe_bind, bind_fields);

static const struct mo_field recipe_fields[] = {
	MO_F(recipe, name, MO_STR, .max = MO_LONGEST_NAME),
	MO_F_SUB(recipe, engine, MO_STRUCT, &recipe_engine_desc),
	MO_F_SUB(recipe, model, MO_OPT, &recipe_model_desc),
	MO_F(recipe, gpus, MO_INT),
	MO_F(recipe, spares, MO_INT),
	MO_F(recipe, nic_gbps, MO_INT),
	MO_F(recipe, gpu, MO_STR),
	MO_F_LIST(recipe, exclude, MO_STRS, .max = MO_NODES_MAX),
	MO_F_SUB(recipe, parallelism, MO_STRUCT, &parallelism_desc),
	MO_F(recipe, seq, MO_INT),
	MO_F(recipe, micro, MO_INT),
	MO_F(recipe, global_batch, MO_INT),
	MO_F(recipe, global_tokens, MO_INT),
	MO_F(recipe, precision, MO_STR),
	MO_F(recipe, recompute, MO_STR),
	MO_F(recipe, steps, MO_INT),
	MO_F_VEC(recipe, features, &kv_desc),
	MO_F_SUB(recipe, bind, MO_STRUCT, &recipe_bind_desc),
	MO_F_VEC(recipe, env, &recipe_env_desc),
	MO_F_SUB(recipe, checkpoint, MO_STRUCT, &checkpoint_desc),
	MO_F(recipe, stop_signal, MO_INT),
	MO_F(recipe, stop_grace_us, MO_INT),
	MO_F(recipe, on_node_loss, MO_STR),
	MO_F(recipe, lease_us, MO_INT),
	MO_F(recipe, grace_us, MO_INT),
	MO_F(recipe, max_cycles, MO_INT),
	MO_F(recipe, priority, MO_INT),
	MO_F(recipe, time_limit_us, MO_INT),
	MO_F_LIST(recipe, left, MO_STRS, .omit = true),
	MO_F(recipe, experiment_hash, MO_STR, .omit = true),
	MO_F(recipe, unread, MO_BOOL, .omit = true),
	MO_F(recipe, own_lines, MO_INT, .omit = true),
	MO_F_VEC(recipe, experiment_args, &kv_desc, .omit = true),
	MO_F_LIST(recipe, preflight, MO_STRS),
};
const struct mo_desc recipe_desc = MO_DESC(recipe, recipe_fields);

bool recipe_leaves(const struct recipe *r, const char *path)
{
	for (size_t i = 0; i < r->n_left; i++)
		if (mo_streq(r->left[i], path))
			return true;
	return false;
}

#define SWAP(a, b) \
	do { \
		typeof(a) kept_ = (a); \
		(a) = (b); \
		(b) = kept_; \
	} while (0)

void recipe_take_read(struct recipe *to, const struct recipe *read)
{
	struct recipe *from = mo_desc_dup(&recipe_desc, read);

	if (!to->parallelism.automatic && !from->parallelism.automatic) {
		SWAP(to->parallelism, from->parallelism);
		SWAP(to->micro, from->micro);
		SWAP(to->recompute, from->recompute);
		SWAP(to->features, from->features);
		SWAP(to->n_features, from->n_features);
		to->unread = from->unread;
	}
	SWAP(to->model, from->model);
	SWAP(to->precision, from->precision);
	SWAP(to->engine.own, from->engine.own);
	SWAP(to->engine.n_own, from->engine.n_own);
	SWAP(to->engine.traits, from->engine.traits);
	to->seq = from->seq;
	to->global_batch = from->global_batch;
	to->global_tokens = from->global_tokens;
	to->steps = from->steps;
	mo_desc_free(&recipe_desc, from);
}

char *recipe_entry_path(const struct recipe *r)
{
	const char *entry = r->engine.entry, *dir = r->engine.workdir;

	if (!entry || *entry == '/' || !dir)
		return entry ? mo_strdup(entry) : NULL;
	return mo_printf("%s/%s", dir, entry);
}

static void add_sizes(struct mo_buf *b, const char *what, const int64_t *sizes, size_t n)
{
	mo_buf_printf(b, ", %s", what);
	for (size_t i = 0; i < n; i++)
		mo_buf_printf(b, "%c%lld", i ? '/' : ' ', (long long)sizes[i]);
}

char *recipe_model_key(const struct recipe_model *m)
{
	struct mo_buf b = { 0 };

	if (!m || m->name)
		return mo_strdup(m ? m->name : NULL);
	const int64_t rest[] = { m->heads, m->kv_heads, m->head_dim, m->ffn,
				 m->mtp,   m->window,   m->gated,    m->tied };

	mo_buf_printf(&b, "%lld layers of %lld, vocabulary %lld", (long long)m->layers,
		      (long long)m->hidden, (long long)m->vocab);
	add_sizes(&b, "heads", rest, ELEMENTSOF(rest));
	if (m->moe)
		add_sizes(&b, "experts",
			  (const int64_t[]){ m->moe->experts, m->moe->topk, m->moe->ffn,
					     m->moe->shared_ffn, m->moe->dense_layers,
					     m->moe->every, m->moe->groups, m->moe->topk_groups },
			  8);
	if (m->mla)
		add_sizes(&b, "mla",
			  (const int64_t[]){ m->mla->q_lora, m->mla->kv_lora, m->mla->qk_nope,
					     m->mla->qk_rope, m->mla->v },
			  5);
	mo_buf_printf(&b, ", %s attention", m->attention ? m->attention : "flash");
	return mo_buf_take(&b);
}

const char *recipe_experiment_arg(const struct recipe *r, const char *key)
{
	for (size_t i = 0; i < r->n_experiment_args; i++)
		if (mo_streq(r->experiment_args[i].key, key))
			return r->experiment_args[i].value;
	return NULL;
}
