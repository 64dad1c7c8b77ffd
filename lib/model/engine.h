/* An engine description: config/engines/KIND.yaml as a value. moed resolves it at submit and it stays with the job, so data files on nodes never differ.
 * Adding an engine is adding a data file. */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/recipe.h"

/* A rule reads one output line (ANSI removed) with a PCRE2 pattern, searched anywhere. Named groups that are Sample fields fill them:
 * iteration steps loss grad_norm lr step_ms step_s tokens tokens_per_s tokens_per_s_per_gpu tflops_per_gpu mfu mem_gb skipped nan path seconds. */
enum line_kind { LINE_SAMPLE, LINE_PHASE, LINE_SAVED, LINE_SAVING, LINE_RESUMED, LINE_ENDED, _LINE_KIND_N };
extern const char *const line_kind_names[_LINE_KIND_N];
struct line_rule {
	int kind;                /* enum line_kind */
	char *pattern;
	char *phase;             /* LINE_PHASE: init load train save eval */
	bool missing_loss_is_nan;/* Megatron leaves the field out when the loss is NaN */
};
/* Where checkpoints lie below checkpoint.dir and when one is complete. */
struct ckpt_layout {
	char *entry;             /* PCRE2 on the entry's name with a group `iteration`, e.g. ^iter_(?<iteration>\d{7})$ */
	char *subdir;            /* relative directory that holds the entries, NULL = checkpoint.dir itself */
	char *tracker;           /* file with the newest iteration, e.g. latest_checkpointed_iteration.txt; NULL = none */
	char **markers; size_t n_markers;   /* files that must exist and be non-empty, e.g. COMPLETE, metadata.json */
	char *shard;             /* PCRE2 on file names that must be non-empty, NULL = any file */
	bool marker_last;        /* shards newer than the marker mean a half replaced checkpoint */
	bool announced_is_complete; /* a CHECKPOINT= announcement counts as the marker (torch, command) */
};
struct engine {
	char *kind, *title, *source;       /* source: version the rules were read from */
	char *python;                      /* default interpreter */
	char *entry;                       /* default entry, NULL = the recipe must say */
	char **argv; size_t n_argv;        /* template: words with {python} {entry} {args} {argv}; {args} and {argv} expand to several words */
	struct kv *flags; size_t n_flags;  /* recipe value -> engine flag: key = recipe path ("parallelism.tp", "steps", "checkpoint.dir"), value = flag ("--tensor-model-parallel-size") */
	char **resume; size_t n_resume;    /* words added when an iteration is resumed: {iteration} {dir} */
	char **fresh; size_t n_fresh;      /* words added for a fresh start */
	struct kv *env; size_t n_env;      /* engine layer of the environment: key = name, value */
	struct kv *env_reason; size_t n_env_reason; /* key = name, value = reason */
	int metrics_rank;                  /* 0 first rank, 1 last rank, 2 any */
	struct line_rule *rules; size_t n_rules;
	struct ckpt_layout layout;
	bool has_layout;
	bool needs_steps;                  /* completion is judged by steps when the recipe gives them; torch/command without: exit 0 of all */
	struct kv *exit_codes; size_t n_exit_codes; /* key = code, value = meaning */
	int64_t stop_signal;               /* of a planned stop when the recipe names none; MO_NONE = SIGTERM */
};
extern const char *const metrics_rank_names[3];
extern const struct mo_desc line_rule_desc, ckpt_layout_desc, engine_desc;
