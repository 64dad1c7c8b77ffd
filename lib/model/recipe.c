/* Descriptions of the recipe. The limits are those of what a document from outside may carry. */
#include "lib/model/recipe.h"

#include "lib/base/buf.h"
#include "lib/model/limits.h"

static const struct mo_field kv_fields[] = {
	MO_D(kv, key, MO_STR, "the key"),
	MO_D(kv, value, MO_STR, "its value; null: a bare flag"),
};
const struct mo_desc kv_desc = MO_DESC(kv, kv_fields);

static const struct mo_field moe_fields[] = {
	MO_D(recipe_moe, experts, MO_INT, "number of experts of a layer"),
	MO_D(recipe_moe, topk, MO_INT, "experts that a token goes to"),
	MO_D(recipe_moe, ffn, MO_INT, "width of one expert's feed-forward"),
	MO_D(recipe_moe, shared_ffn, MO_INT,
	     "width of all shared experts together; 0: there are none"),
	MO_D(recipe_moe, dense_layers, MO_INT, "first layers without experts"),
	MO_D(recipe_moe, every, MO_INT, "only layers whose number it divides have experts; 1: all",
	     .omit = true),
	MO_D(recipe_moe, groups, MO_INT,
	     "equal groups of experts, for node-limited routing; 0: none", .omit = true),
	MO_D(recipe_moe, topk_groups, MO_INT, "groups that a token's experts lie in; 0: anywhere",
	     .omit = true),
};
static const struct mo_desc moe_desc = MO_DESC(recipe_moe, moe_fields);

static const struct mo_field mla_fields[] = {
	MO_D(recipe_mla, q_lora, MO_INT,
	     "rank of the compressed queries; 0: they are not compressed"),
	MO_D(recipe_mla, kv_lora, MO_INT, "rank of the compressed keys and values"),
	MO_D(recipe_mla, qk_nope, MO_INT, "width per head of queries and keys without positions"),
	MO_D(recipe_mla, qk_rope, MO_INT,
	     "width per head of queries and keys with rotary positions"),
	MO_D(recipe_mla, v, MO_INT, "width per head of values"),
};
static const struct mo_desc mla_desc = MO_DESC(recipe_mla, mla_fields);

static const struct mo_field model_fields[] = {
	MO_D(recipe_model, name, MO_STR, "its name in the catalogue; null: it was given inline"),
	MO_D(recipe_model, layers, MO_INT, "number of layers"),
	MO_D(recipe_model, hidden, MO_INT, "width of the residual stream"),
	MO_D(recipe_model, heads, MO_INT, "attention heads"),
	MO_D(recipe_model, kv_heads, MO_INT, "key-value heads (GQA)"),
	MO_D(recipe_model, head_dim, MO_INT, "width of one head"),
	MO_D(recipe_model, ffn, MO_INT, "width of a dense layer's feed-forward"),
	MO_D(recipe_model, vocab, MO_INT, "size of the vocabulary, tokens"),
	MO_D(recipe_model, gated, MO_BOOL, "SwiGLU: three matrices instead of two"),
	MO_D(recipe_model, attention, MO_STR, "flash or unfused"),
	MO_D(recipe_model, mtp, MO_INT, "multi-token prediction layers; 0: none"),
	MO_D(recipe_model, window, MO_INT, "width of the attention window, tokens; 0: none"),
	MO_D(recipe_model, tied, MO_BOOL, "embedding and output share weights"),
	MO_D(recipe_model, qk_norm, MO_BOOL, "queries and keys have norms of their own"),
	MO_D(recipe_model, bias, MO_BOOL, "linear layers have biases"),
	MO_D_SUB(recipe_model, moe, MO_OPT, &moe_desc, "its experts; null: a dense model"),
	MO_D_SUB(recipe_model, mla, MO_OPT, &mla_desc, "latent attention; null: it has none"),
};
const struct mo_desc recipe_model_desc = MO_DESC(recipe_model, model_fields);

static const struct mo_field parallelism_fields[] = {
	MO_D(recipe_parallelism, automatic, MO_BOOL, "the planner chooses"),
	MO_D(recipe_parallelism, tp, MO_INT, "ranks of tensor parallelism"),
	MO_D(recipe_parallelism, pp, MO_INT, "stages of the pipeline"),
	MO_D(recipe_parallelism, vpp, MO_INT, "virtual stages per rank of the pipeline"),
	MO_D(recipe_parallelism, ep, MO_INT, "ranks of expert parallelism"),
	MO_D(recipe_parallelism, etp, MO_INT, "tensor parallel ranks of one expert"),
	MO_D(recipe_parallelism, cp, MO_INT, "ranks of context parallelism"),
	MO_D(recipe_parallelism, dp, MO_INT, "data parallel ranks: GPUs / (tp pp cp)"),
	MO_D(recipe_parallelism, sharding, MO_STR, "none, zero1, zero2 or zero3 (FSDP)"),
	MO_D(recipe_parallelism, schedule, MO_STR,
	     "pipeline schedule: 1f1b, interleaved, zb1p, zbv, v-half, v-min or dualpipe"),
	MO_D(recipe_parallelism, given, MO_BOOL, "the recipe has this mapping"),
};
static const struct mo_desc parallelism_desc = MO_DESC(recipe_parallelism, parallelism_fields);

static const struct mo_field env_fields[] = {
	MO_D(recipe_env, name, MO_STR, "name of the variable"),
	MO_D(recipe_env, value, MO_STR, "its text; null: it is read from the file"),
	MO_D(recipe_env, file, MO_STR,
	     "file of the node that holds the value; null: it was given as text"),
};
const struct mo_desc recipe_env_desc = MO_DESC(recipe_env, env_fields);

static const struct mo_field checkpoint_fields[] = {
	MO_D(recipe_checkpoint, dir, MO_STR, "absolute path where they lie; null: not given"),
	MO_D(recipe_checkpoint, added, MO_BOOL,
	     "the engine's own subdirectory was added to the path that was named", .omit = true),
	MO_D(recipe_checkpoint, every, MO_INT,
	     "iterations between saves; 0: auto, null: not given"),
	MO_D(recipe_checkpoint, automatic, MO_BOOL,
	     "the interval was auto and the planner filled it in", .omit = true),
	MO_D(recipe_checkpoint, keep, MO_INT, "how many of the newest are kept; 0: all"),
	MO_D(recipe_checkpoint, verify, MO_STR, "how much is checked: marker, sizes or crc"),
	MO_D(recipe_checkpoint, resume, MO_INT, "iteration to begin from; -1: auto, -2: never"),
	MO_D(recipe_checkpoint, layout, MO_STR,
	     "how a program of its own names them; null: as the engine does", .omit = true),
	MO_D_LIST(recipe_checkpoint, resume_args, MO_STRS,
		  "words of the command given only to a resume", .omit = true),
};
static const struct mo_desc checkpoint_desc = MO_DESC(recipe_checkpoint, checkpoint_fields);

static const struct mo_field engine_fields[] = {
	MO_D(recipe_engine, kind, MO_STR, "name of the engine file"),
	MO_D(recipe_engine, workdir, MO_STR, "directory that the ranks start in"),
	MO_D(recipe_engine, entry, MO_STR, "script to run"),
	MO_D(recipe_engine, python, MO_STR, "interpreter"),
	MO_D(recipe_engine, prepare, MO_STR, "shell text run once per node before the ranks"),
	MO_D_LIST(recipe_engine, prepare_argv, MO_STRS,
		  "the same as words of a program, instead of a text", .omit = true),
	MO_D_LIST(recipe_engine, argv, MO_STRS, "the program and its words, of kind command"),
	MO_D_VEC(recipe_engine, args, &kv_desc,
		 "words for the engine; of a list the key is the word"),
	MO_D(recipe_engine, args_list, MO_BOOL,
	     "they were given as a list, and are passed as they are"),
	MO_D_LIST(recipe_engine, args_off, MO_STRS, "keys that were given as false", .omit = true),
	MO_D(recipe_engine, strict_args, MO_BOOL,
	     "flags that the engine's list does not know are errors"),
	MO_D_LIST(recipe_engine, args_unchecked, MO_STRS, "flags that are not checked"),
	MO_D_VEC(recipe_engine, own, &kv_desc,
		 "what its own configuration says by the keys that plans know", .omit = true),
	MO_D_SUB(recipe_engine, container, MO_OPT, &recipe_container_desc,
		 "the image whose files the ranks see", .omit = true),
	MO_D_SUB(recipe_engine, traits, MO_OPT, &engine_traits_desc,
		 "what plans know of its training; null: a record of an older version",
		 .omit = true),
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
	MO_D(recipe, name, MO_STR, "what the job is called", .max = MO_LONGEST_NAME),
	MO_D_SUB(recipe, engine, MO_STRUCT, &recipe_engine_desc,
		 "what trains, and with which words"),
	MO_D_SUB(recipe, model, MO_OPT, &recipe_model_desc, "what is trained; null: not given"),
	MO_D(recipe, gpus, MO_INT, "ranks, one per GPU"),
	MO_D(recipe, spares, MO_INT, "nodes that are kept for it beside its ranks"),
	MO_D(recipe, nic_gbps, MO_INT, "network bandwidth of a GPU for plans, Gbit/s"),
	MO_D(recipe, gpu, MO_STR, "type of GPU; null: any"),
	MO_D_LIST(recipe, nodes, MO_STRS, "the only nodes that it may get; none: any",
		  .max = MO_NODES_MAX, .omit = true),
	MO_D_LIST(recipe, exclude, MO_STRS, "nodes that it must not get", .max = MO_NODES_MAX),
	MO_D_SUB(recipe, parallelism, MO_STRUCT, &parallelism_desc, "sizes of the mesh"),
	MO_D(recipe, seq, MO_INT, "sequence length, tokens"),
	MO_D(recipe, micro, MO_INT, "sequences of a micro-batch"),
	MO_D(recipe, global_batch, MO_INT, "sequences of a step"),
	MO_D(recipe, global_tokens, MO_INT, "tokens of a step, instead of sequences"),
	MO_D(recipe, precision, MO_STR, "bf16, fp16, fp8, mxfp8 or nvfp4"),
	MO_D(recipe, recompute, MO_STR, "activation recomputation: none, selective or full"),
	MO_D(recipe, steps, MO_INT, "iterations of the whole run; null: not given"),
	MO_D_VEC(recipe, features, &kv_desc,
		 "every feature that was given, with its value as text"),
	MO_D_SUB(recipe, bind, MO_STRUCT, &recipe_bind_desc,
		 "how ranks are bound to cores, memory and network"),
	MO_D_VEC(recipe, env, &recipe_env_desc, "variables of the ranks that the recipe gives"),
	MO_D_SUB(recipe, checkpoint, MO_STRUCT, &checkpoint_desc,
		 "where and how often it saves, and what it resumes from"),
	MO_D(recipe, stop_signal, MO_INT, "number of the signal of a planned stop"),
	MO_D(recipe, stop_grace_us, MO_INT,
	     "time from that signal until ranks are killed, microseconds"),
	MO_D(recipe, on_node_loss, MO_STR, "wait, or spare: fence_command may power it off"),
	MO_D(recipe, lease_us, MO_INT,
	     "lease of a lost node, microseconds; without effect while it waits"),
	MO_D(recipe, grace_us, MO_INT, "pause before the next attempt, microseconds"),
	MO_D(recipe, max_cycles, MO_INT,
	     "failures of one kind without a new checkpoint that stop the job"),
	MO_D(recipe, backoff_us, MO_INT,
	     "longest pause after failures in a row, microseconds; 0: none", .omit = true),
	MO_D(recipe, hang, MO_STR,
	     "what follows when nothing moves: auto, the attempt ends; report; off", .omit = true),
	MO_D(recipe, straggler, MO_STR,
	     "what follows when a rank makes the job slow: report; drain, it leaves the node",
	     .omit = true),
	MO_D_VEC(recipe, policy, &kv_desc, "what follows a failure, by its class", .omit = true),
	MO_D(recipe, loss_action, MO_STR, "what a loss that stays bad leads to; null: report",
	     .omit = true),
	MO_D(recipe, loss_factor, MO_REAL,
	     "a loss above so many times the median of the recent ones is a spike; null: 3",
	     .omit = true),
	MO_D(recipe, max_rollbacks, MO_INT,
	     "how often a job goes back from one place for its loss; null: 2", .omit = true),
	MO_D(recipe, skips, MO_INT,
	     "how many windows of data it may leave out when it goes back; null: none",
	     .omit = true),
	MO_D_VEC(recipe, labels, &kv_desc, "words of the user for it, by name",
		 .max = MO_LABELS_MAX, .omit = true),
	MO_D(recipe, priority, MO_INT, "0 to 100, higher first"),
	MO_D(recipe, time_limit_us, MO_INT,
	     "time after which it is stopped as planned, microseconds; null: none"),
	MO_D_LIST(recipe, left, MO_STRS, "paths that it leaves to the engine's own configuration",
		  .omit = true),
	MO_D(recipe, experiment_hash, MO_STR,
	     "hash of the engine's files that were read; null: they were not", .omit = true),
	MO_D(recipe, unread, MO_BOOL,
	     "the engine's files were not read: sizes of the mesh are not known", .omit = true),
	MO_D(recipe, own_lines, MO_INT,
	     "how many of the engine's line rules are the recipe's; null: none", .omit = true),
	MO_D_VEC(recipe, experiment_args, &kv_desc,
		 "what the engine's files say of the keys that its rules read", .omit = true),
	MO_D_LIST(recipe, preflight, MO_STRS,
		  "standard, none, or the checks that decide which nodes it may get"),
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

char *recipe_save_dir(const struct recipe *r)
{
	return container_on_node(r->engine.container, r->checkpoint.dir);
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
