/* The parsed recipe: a plain value. Keys and meaning: docs/recipe.md.
 *
 * Filled and checked by lib/recipe (recipe_file.h), the same code in moectl and in moed; read by
 * everyone: the planner, the rules of the controller, the order of launch. It is stored with its
 * job and goes through every restart, so what is described here is on disks of released versions.
 * Integers not given stay MO_NONE unless a default is named here.
 *
 * What never happens: a value that was not given is guessed here; whoever needs one says how he
 * found it (the planner, the engine's own experiment: `lib/recipe/experiment.h`). */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/container.h"
#include "lib/model/traits.h"

struct kv {
	char *key, *value;
}; /* generic pair; value NULL = bare flag */
extern const struct mo_desc kv_desc;

/* every: layers whose number it divides have experts; default 1 = all behind dense_layers;
 * groups: node-limited routing, a token's experts lie in topk_groups of so many equal groups of
 * experts, 0 = anywhere */
struct recipe_moe {
	int64_t experts, topk, ffn, shared_ffn, dense_layers, every, groups, topk_groups;
};
struct recipe_mla {
	int64_t q_lora, kv_lora, qk_nope, qk_rope, v;
};
struct recipe_model {
	char *name; /* catalogue name, NULL when inline */
	int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
	bool gated;          /* default true (SwiGLU) */
	char *attention;     /* flash | unfused; default flash */
	int64_t mtp, window; /* 0 = none */
	bool tied;
	/* queries and keys have norms of their own */
	bool qk_norm;
	bool bias;              /* linear layers have biases */
	struct recipe_moe *moe; /* NULL = dense */
	struct recipe_mla *mla;
};
struct recipe_parallelism {
	/* `parallelism: auto`: the planner chooses */
	bool automatic;
	int64_t tp, pp, vpp, ep, etp, cp; /* default 1 each */
	int64_t dp;                       /* resolved: world / (tp pp cp) */
	/* none zero1 zero2 zero3; 1f1b interleaved zb1p zbv v-half v-min dualpipe */
	char *sharding, *schedule;
	bool given; /* the recipe has the mapping */
};
/* file: read on the node, value NULL then */
struct recipe_env {
	char *name, *value, *file;
};
struct recipe_checkpoint {
	char *dir; /* NULL = none */
	/* the engine's own directory (engine.save_below) was added to the one that was named */
	bool added;
	/* iterations; MO_NONE = not given, 0 = auto (Young/Daly) */
	int64_t every;
	/* every was auto; the planner filled it in until saves are measured */
	bool automatic;
	int64_t keep; /* 0 = all */
	char *verify; /* marker sizes crc; default sizes */
	/* -1 auto (default), -2 never, N >= 0 that iteration */
	int64_t resume;
	/* how a program names its checkpoints (lib/recipe/layout_text.c); NULL = the engine's */
	char *layout;
	char **resume_args;
	size_t n_resume_args; /* words given only to a resume */
};
struct recipe_engine {
	/* name of the engine file: torch command megatron-lm ... */
	char *kind;
	char *workdir, *entry, *python, *prepare;
	/* engine.prepare as words: run once per node before the ranks; instead of prepare, which
	 * stays NULL */
	char **prepare_argv;
	size_t n_prepare_argv;
	char **argv;
	size_t n_argv; /* command: the program */
	/* list form: key NULL-less: key = the word, value NULL, args_list true */
	struct kv *args;
	size_t n_args;
	/* keys of the mapping that are `false` (engine.bool_words) */
	char **args_off;
	size_t n_args_off;
	/* args was a list: words are passed as they are */
	bool args_list;
	bool strict_args;
	char **args_unchecked;
	size_t n_args_unchecked;
	/* what its own configuration says by the keys that plans know
	 * (engine.experiment_plan_keys) */
	struct kv *own;
	size_t n_own;
	struct recipe_container *container; /* NULL = the node's own files */
	/* What plans know of its training, by the `plan` of its file; NULL: a record of an older
	 * version. */
	struct engine_traits *traits;
};
/* cpu: numa|none; memory: preferred|bind|interleave|none; nic: nearest|none; smt: auto|one|all;
 * verify: strict|warn|off */
struct recipe_bind {
	char *cpu, *memory, *nic, *smt, *verify;
	int64_t reserve_cores;
};
struct recipe {
	char *name;
	struct recipe_engine engine;
	struct recipe_model *model;     /* NULL = not given */
	int64_t gpus, spares, nic_gbps; /* cluster.* */
	char *gpu;                      /* cluster.gpu, NULL = any */
	char **nodes;                   /* the only ones that it may get; none: any */
	size_t n_nodes;
	char **exclude;
	size_t n_exclude;
	struct recipe_parallelism parallelism;
	int64_t seq, micro, global_batch, global_tokens; /* batch.* */
	char *precision, *recompute;
	int64_t steps; /* MO_NONE = not given */
	/* every given feature with its value as text; those asking for something not built were
	 * refused */
	struct kv *features;
	size_t n_features;
	struct recipe_bind bind;
	struct recipe_env *env;
	size_t n_env;
	struct recipe_checkpoint checkpoint;
	/* signal number, default the engine's, else SIGTERM */
	int64_t stop_signal;
	int64_t stop_grace_us; /* default 120 s */
	char *on_node_loss;    /* wait, spare */
	/* recovery.lease, .grace (pause before the next attempt), .max_cycles_without_progress
	 * (default 3) */
	int64_t lease_us, grace_us, max_cycles;
	/* recovery.backoff: the longest pause after failures in a row; 0 = none; MO_NONE: a
	 * recipe of before there was one: the default */
	int64_t backoff_us;
	/* recovery.loss_spike.action, .factor, .max: none, report, rollback; NULL, MO_NONE_F,
	 * MO_NONE: the default (daemon/core/state/numbers.h); .skip: how many windows of data the
	 * job may leave out, MO_NONE: none */
	char *loss_action;
	double loss_factor;
	int64_t max_rollbacks, skips;
	/* recovery.hang: auto, report or off; NULL: a recipe of before there was one, report */
	char *hang;
	/* recovery.straggler: report or drain; NULL: a recipe of before there was one, report */
	char *straggler;
	/* recovery.policy: class of failure = action (lib/model/failure.h) */
	struct kv *policy;
	size_t n_policy;
	/* the user's own words for it, which decide nothing (lib/model/labels.h) */
	struct kv *labels;
	size_t n_labels;
	int64_t priority;      /* default 50, 0..100 */
	int64_t time_limit_us; /* MO_NONE = none */
	/* Paths that the recipe leaves to the engine's own experiment: the command does not say
	 * them. */
	char **left;
	size_t n_left;
	/* of the files that said them, NULL = they were not read: */
	char *experiment_hash;
	/* sizes of the sharding are then not known */
	bool unread;
	/* metrics.lines: so many of the engine's rules are the recipe's own; MO_NONE none */
	int64_t own_lines;
	/* what those files say of the engine's own keys that its rules read */
	struct kv *experiment_args;
	size_t n_experiment_args;
	/* health.preflight: one word `standard`|`none` or a list */
	char **preflight;
	size_t n_preflight;
};
extern const struct mo_desc recipe_desc, recipe_model_desc, recipe_env_desc;
/* The recipe says nothing of the path, its engine's own experiment does: the command leaves it
 * alone. */
bool recipe_leaves(const struct recipe *r, const char *path);
/* What the recipe leaves to its engine's own configuration becomes what that says: `read` is the
 * same recipe, parsed with it. What the planner chose stays, and so does everything by which the
 * command was made. */
void recipe_take_read(struct recipe *to, const struct recipe *read);
/* Where engine.entry lies, by engine.workdir; NULL: there is none. The caller frees it. */
char *recipe_entry_path(const struct recipe *r);
/* checkpoint.dir as the nodes have it, cleaned, whose path in an image may be another one; NULL:
 * the recipe has none. The caller frees it. */
char *recipe_save_dir(const struct recipe *r);
/* What tells models apart: the catalogue's name, else all that an inline one gives. NULL without
 * a model; the caller frees. */
char *recipe_model_key(const struct recipe_model *m);
/* What the engine's own experiment says of one of its keys that the engine file reads; NULL:
 * nothing, or it was not read. */
const char *recipe_experiment_arg(const struct recipe *r, const char *key);
extern const struct mo_desc recipe_bind_desc;
