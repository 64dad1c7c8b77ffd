/* An engine's description: config/engines/KIND.yaml as a value. Its keys: docs/engines.md.
 *
 * Read by lib/recipe (engine_file.h), where a recipe is checked. moed resolves it at submit and it
 * stays with the job, so that data files on nodes never differ and a job goes on as it was begun,
 * whatever an upgrade brings. Adding an engine is adding a data file: no C knows one by its name.
 *
 * Who uses what: `command` and flags the order of launch, `lines` moe-stepd, `layout` moe-ckpt and
 * the rules of the controller, `plan` the planner (as struct engine_traits).
 *
 * What never happens: a part that is missing is guessed from the engine's name. */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/recipe.h"

/* A rule reads one output line (ANSI removed) with a PCRE2 pattern, searched anywhere. Named
 * groups that are Sample fields fill them: iteration steps loss grad_norm lr step_ms step_s
 * tokens tokens_per_s tokens_per_s_per_gpu tflops_per_gpu mfu mem_gb mem_gib mem_mib skipped nan
 * path seconds. Or `begin` finds where a record of "key: value" pairs begins; the pairs behind
 * it, up to the next record of the line, are matched by key: order and further pairs do not
 * matter. */
enum line_kind {
	LINE_SAMPLE,
	LINE_PHASE,
	LINE_SAVED,
	LINE_SAVING,
	LINE_RESUMED,
	LINE_ENDED,
	_LINE_KIND_N
};
extern const char *const line_kind_names[_LINE_KIND_N];
struct line_rule {
	int kind;      /* enum line_kind */
	char *pattern; /* or begin */
	char *begin;   /* its groups are values too */
	/* between pairs, e.g. "|"; " " = words: a key, then its value; NULL = "key: value" and
	 * "key=value", a value ends at the next blank */
	char *separator;
	/* key = the pair's key as printed, value = name of a group above; of "inst/avg" and
	 * "inst (avg x)" the first number counts */
	struct kv *fields;
	size_t n_fields;
	/* of a launch: those of consumed_samples and batch_samples, for an agent of before, which
	 * refuses a value that it does not know, reads over a member that it does not know */
	struct kv *data_fields;
	size_t n_data_fields;
	/* values without which a record says nothing, e.g. loss */
	char **needs;
	size_t n_needs;
	char *phase; /* LINE_PHASE: init load train save eval */
	/* added to the iteration of a sample; MO_NONE = 0; 1 for engines that call their first
	 * iteration 0 */
	int64_t iteration_offset;
	bool missing_loss_is_nan; /* Megatron leaves the field out when the loss is NaN */
	/* it counts only where its group `steps` is the job's number of iterations */
	bool of_steps;
};
/* Files that ranks or groups of ranks write: their names hold numbers, and every combination of
 * them from 0 up to the largest must be there. */
enum ckpt_count { COUNT_WORLD, COUNT_DIVIDES, _CKPT_COUNT_N };
extern const char *const ckpt_count_names[_CKPT_COUNT_N];
struct ckpt_grid {
	/* PCRE2 on file names. Up to four groups are numbers; a group `variant` is a text: the
	 * files of each variant are a grid, all of one size */
	char *files;
	/* enum ckpt_count: as many as ranks, or ranks are a multiple of them; -1 = any number */
	int count;
	bool required; /* there must be some */
	/* whole numbers in the pickle of one of these archives whose product is how many there
	 * are, e.g. tensor_model_parallel_size */
	char **says;
	size_t n_says;
	/* Another such number, when it is not the first one of `says`: ranks are counted with it
	 * in the first one's place, so of the first and the last number only the pairs (k mod
	 * first, k / tied) exist, e.g. expert_tensor_parallel_size. */
	char *tied;
	/* Sizes of the recipe's parallelism that the numbers of `says`, and then `tied`, are, in
	 * their order: only a job with the same can load it. None: it reshards. */
	char **fixes;
	size_t n_fixes;
	/* variant: number or truth beside them; where it is not zero, there are files of this
	 * variant. e.g. distrib_optim: use_distributed_optimizer */
	struct kv *variants;
	size_t n_variants;
	/* what the pickles of other archives say of this grid; told_by: PCRE2 on their names.
	 * Words: see iterations of the layout */
	char *told_by;
	/* words: number, or !number: where all hold there need be none of the files, though they
	 * are required */
	struct kv *excused;
	size_t n_excused;
	/* words before a number: where it is above 0, the first number in the names counts so
	 * many, and ranks are a multiple of the files (MiCS) */
	char *share;
	/* name of a list of numbers: where it is there, the files are as many as their sum,
	 * times the size of the last number in the names (experts, which layers have unlike many
	 * of) */
	char *sum;
};
#define CKPT_VARIANTS_MAX 32
#define CKPT_NUMBERS_MAX 4 /* numbers in the names of a grid's files */
#define CKPT_FIXED_N 5
/* tp pp ep etp cp: what `fixes` may name */
extern const char *const ckpt_fixed_names[CKPT_FIXED_N];
/* A file that must be there and not be empty. */
struct ckpt_need {
	/* its name; "/" at the end: any file below that directory. $1: group 1 of `each` */
	char *file;
	char *each;        /* PCRE2 on file names: for every match; NULL = always */
	char *unless;      /* PCRE2 on file names: not where such a file is */
	char *unless_said; /* PCRE2 on the content of markers: not where one says so */
};
#define CKPT_NEEDS_MAX 32
/* What a file must be by its name: torch (an archive or a stream of torch.save), pickle, json,
 * safetensors, ocdbt (its manifest), data (anything but zeros), msgpack. */
enum ckpt_format {
	FORMAT_UNKNOWN = -1,
	FORMAT_TORCH,
	FORMAT_PICKLE,
	FORMAT_JSON,
	FORMAT_SAFETENSORS,
	FORMAT_OCDBT,
	FORMAT_DATA,
	FORMAT_MSGPACK,
	_CKPT_FORMAT_N
};
extern const char *const ckpt_format_names[_CKPT_FORMAT_N];
/* Where checkpoints lie below checkpoint.dir and when one is complete. */
struct ckpt_layout {
	/* PCRE2 on the entry's name with a group `iteration`, e.g. ^iter_(?<iteration>\d{7})$ */
	char *entry;
	/* relative directory that holds the entries, NULL = checkpoint.dir itself */
	char *subdir;
	/* file with the newest iteration, e.g. latest_checkpointed_iteration.txt; NULL = none */
	char *tracker;
	bool tracker_names_entry; /* it holds an entry's name instead, as DeepSpeed's latest does */
	/* PCRE2 on file names: an entry with such files can be loaded only while the tracker
	 * names it, whatever step the engine is given (it reads these of the tracker's). NULL =
	 * none. */
	char *by_tracker;
	/* files that must exist and be non-empty, e.g. COMPLETE, metadata.json, state/_METADATA;
	 * "a|b" = one of them */
	char **markers;
	size_t n_markers;
	char *shard;      /* PCRE2 on file names that must be non-empty, NULL = any file */
	bool marker_last; /* shards newer than the marker mean a half replaced checkpoint */
	/* a CHECKPOINT= announcement counts as the marker (torch, command) */
	bool announced_is_complete;
	/* PCRE2 on names with a group `iteration`: an entry whose save never ended, e.g.
	 * ^(?<iteration>\d+)\.orbax-checkpoint-tmp; NULL = none */
	char *unfinished;
	/* PCRE2 on file names: one that is there while a save is under way, or was cut, e.g.
	 * \.metadata\.tmp$ */
	char *leftover;
	/* PCRE2 searched in the markers' content (in a pickle: in its texts): every match is a
	 * file that must be there, and no other shard may hold anything */
	char *listed;
	/* PCRE2 that the content of a marker must hold, e.g. optim; without it the save is of
	 * the model only */
	char *contains;
	/* in a pickle: names of the numbers behind a listed file's name whose sum is the least
	 * that it holds, e.g. offset length */
	char **listed_bytes;
	size_t n_listed_bytes;
	/* with markers too they are a second format: where there are such files and no marker
	 * they stand for the markers */
	struct ckpt_grid *grids;
	size_t n_grids;
	struct ckpt_need *needs;
	size_t n_needs;
	/* PCRE2 on file names: name of a format (ckpt_format_names) that such a file must have;
	 * the first that matches counts */
	struct kv *formats;
	size_t n_formats;
	/* PCRE2 on names of archives: words of its pickle, in this order; the number behind the
	 * last one is the entry's iteration, or another save's content is here */
	struct kv *iterations;
	size_t n_iterations;
	/* marker: names of members that its JSON object must have, not null, zero or empty */
	struct kv *members;
	size_t n_members;
	/* what looks like a model's state wherever it lies
	 * (config/checkpoints/model-state.yaml): endings of file names, from so many bytes on;
	 * MO_NONE = nothing does */
	char **state_names;
	size_t n_state_names;
	int64_t state_bytes;
	/* names of the number in such a file that is its iteration */
	char **state_words;
	size_t n_state_words;
	/* PCRE2 on names of files that a run writes beside its state: logs; NULL = none */
	char *beside;
	/* of checkpoint.layout: */
	/* entries may be single files; only the program knows what empty files in them mean */
	bool given;
	/* `entry` has no group: each save writes over the last one, and its iteration is what is
	 * in it (state_words), or 0 */
	bool unnumbered;
};
/* A file per rank that the engine itself writes while it works, one JSON object per line. Read
 * by a process of its own as the job's user. */
struct engine_heartbeat {
	/* relative to engine.workdir, or absolute; {arg:NAME:DEFAULT} = that word of
	 * engine.args; NULL = none */
	char *dir;
	/* PCRE2 on names in dir with {rank} replaced by the rank's number; of several the newest
	 * counts */
	char *file;
	char *iteration; /* JSON member with the iteration that ended */
	char *event;     /* JSON member that names what happens, NULL = none */
	/* the iteration counts only in lines whose event is this one; NULL = in all */
	char *done;
	struct kv *phases;
	size_t n_phases; /* value of `event` = phase */
};
enum engine_processes { PROCESS_PER_GPU, PROCESS_PER_NODE, _ENGINE_PROCESSES_N };
extern const char *const engine_processes_names[_ENGINE_PROCESSES_N];
/* Variables that a feature of the recipe brings along (the words that it brings are rows of
 * `flags` with the path features.NAME). */
struct engine_feature {
	char *when; /* as the key of a flag row: features.a2a=deepep */
	char *reason;
	struct kv *env;
	size_t n_env;
};
/* One rule: while all of `when` hold, none of `refuse` may hold and all of `need` must. Values:
 * a|b|c, !a|b|c, >N, <N, given (it asks for something); paths of the recipe, or args.KEY for
 * what engine.args give. */
struct engine_rule {
	char *id, *because, *instead;
	/* where only the engine's own files break it, it is a warning: the engine lets it pass,
	 * or its models do as they like */
	bool files_may;
	bool warns; /* it is a warning whoever breaks it: it may go well */
	struct kv *when;
	size_t n_when;
	struct kv *refuse;
	size_t n_refuse;
	struct kv *need;
	size_t n_need;
};
/* What the engine sets itself where its configuration says all of `when`: its own keys in both. */
struct engine_force {
	char *because;
	struct kv *when;
	size_t n_when;
	struct kv *set;
	size_t n_set;
};
/* What only the checks of a recipe need; it does not stay with the job. */
struct engine_checks {
	/* value ("features.a2a=deepep", "features.sync_free", "precision=nvfp4") -> why the
	 * engine has none and what to do */
	struct kv *missing;
	size_t n_missing;
	struct engine_rule *rules;
	size_t n_rules;
	char **keys;
	size_t n_keys; /* known flags, without dashes in front */
	char *keys_source;
	/* flags of releases before keys_source, gone from it */
	char **keys_older;
	size_t n_keys_older;
	bool keys_complete;
	/* of its own configuration: with a value here it takes keys that nobody knows */
	char *keys_more;
	/* flags that divide layers which do not divide evenly */
	char **layout_flags;
	size_t n_layout_flags;
	/* flags that name a directory which the engine writes to, beside its checkpoints */
	char **outputs;
	size_t n_outputs;
	/* flags of replicas and of shards: dp is both */
	char **data_parallel;
	size_t n_data_parallel;
	struct kv *renamed;
	size_t n_renamed; /* old flag -> the new one, or what to do */
	/* What the engine's parser takes: int, float, bool or "a|b|c" = the keys between blanks. */
	struct kv *types;
	size_t n_types;
	/* "KEY if CONDITIONS" = the names between blanks that its own code has; others may be
	 * the user's. */
	struct kv *names;
	size_t n_names;
	/* flag -> condition on its value: then the last state is not saved */
	struct kv *last_save_off;
	size_t n_last_save_off;
	/* What plans know of it: trait, or trait=value = which of its keys say so
	 * (lib/recipe/engine_plan.c). */
	struct kv *plan;
	size_t n_plan;
	char **plan_like;
	size_t n_plan_like; /* kinds whose rows follow */
	bool plan_given;    /* the file has the section */
	/* For moectl init: what it takes for a recipe value that its command leaves out (a word,
	 * or {path} = that other value), and newer names of modules of argv. */
	struct kv *untold;
	size_t n_untold;
	struct kv *module_names;
	size_t n_module_names;
};
struct engine {
	char *kind, *title, *source; /* source: version the rules were read from */
	char *python;                /* default interpreter */
	char *entry;                 /* default entry, NULL = the recipe must say */
	/* template: words with {python} {entry} {args} {argv}; {args} and {argv} expand to
	 * several words */
	char **argv;
	size_t n_argv;
	/* a mapping of engine.args becomes key=value words instead of --key value */
	bool args_equals;
	/* recipe value -> engine flag: key = recipe path ("parallelism.tp", "steps",
	 * "checkpoint.dir"), value = flag ("--tensor-model-parallel-size") */
	struct kv *flags;
	size_t n_flags;
	/* words added when an iteration is resumed: {iteration} {dir} */
	char **resume;
	size_t n_resume;
	char **fresh;
	size_t n_fresh; /* words added for a fresh start */
	/* words by which it leaves out the data of some iterations: {iterations} in a word is
	 * their list with commas, as a word by itself it is a word for each; none: it cannot */
	char **skip;
	size_t n_skip;
	struct kv *env;
	size_t n_env; /* engine layer of the environment: key = name, value */
	struct kv *env_reason;
	size_t n_env_reason; /* key = name, value = reason */
	int metrics_rank;    /* 0 first rank, 1 last rank, 2 any */
	struct line_rule *rules;
	size_t n_rules;
	struct ckpt_layout layout;
	bool has_layout;
	/* completion is judged by steps when the recipe gives them; torch/command without: exit
	 * 0 of all */
	bool needs_steps;
	/* key = code, value = meaning; shown in reasons */
	struct kv *exit_codes;
	size_t n_exit_codes;
	/* enum engine_processes: a rank per GPU, or one per node that sees all GPUs of the job
	 * there */
	int processes;
	/* words of a program run once per node as the user before the ranks, {python} {entry};
	 * the recipe's engine.prepare wins */
	char **prepare;
	size_t n_prepare;
	int64_t prepare_limit_us; /* MO_NONE = 600 s */
	/* its lines env.NAME=VALUE and extra.key=value change environment and command of the
	 * ranks */
	bool prepare_hooks;
	struct engine_heartbeat heartbeat;
	/* recipe paths that may differ between the run that saved a checkpoint and the one that
	 * resumes from it */
	char **may_change;
	size_t n_may_change;
	bool stop_saves; /* the stop signal saves a checkpoint */
	/* The key with which it writes down what its pipeline did when, and where that lies, for
	 * people; NULL: it does not. */
	char *dump_key, *dump_in;
	/* of a planned stop when the recipe names none; MO_NONE = SIGTERM */
	int64_t stop_signal;
	/* flags that moectl decides itself, without dashes = what to write instead; neither
	 * engine.args nor engine.prepare may give them */
	struct kv *owned;
	size_t n_owned;
	/* the stages of a pipeline hold equally many layers, unless the recipe gives a layout */
	bool even_layers;
	/* true and false of engine.args are words: --key true; else true is the bare flag and
	 * false is left out */
	bool bool_words;
	struct engine_feature *features;
	size_t n_features;
	/* the framework: of an experiment that it runs; NULL = any */
	char *experiment_framework;
	/* format of a configuration of its own that the command names: primus; NULL = none */
	char *experiment;
	/* What its keys mean: recipe path = its key, or path=word = "KEY=VALUE .." that all hold
	 * (a key alone: not null). */
	struct kv *experiment_values;
	size_t n_experiment_values;
	/* The engine saves into save_below below the directory that these names of its
	 * configuration make, joined in this order: name = the variables that its files fill it
	 * from, between blanks (lib/recipe/directory.h). NULL, none: it saves where its flag
	 * says. */
	char *save_below;
	/* key of its configuration without which nothing is saved; NULL: none is known */
	char *save_key;
	struct kv *save_names;
	size_t n_save_names;
	/* conditions of which each makes it a model that plans do not know */
	char **experiment_no_model;
	size_t n_experiment_no_model;
	/* keys that plans read beside those (recipe.engine.own) */
	char **experiment_plan_keys;
	size_t n_experiment_plan_keys;
	/* of its own keys those that rules and flag rows read */
	char **experiment_keys;
	size_t n_experiment_keys;
	struct engine_force *forced;
	size_t n_forced; /* in the engine's own order */
	/* flags that its program takes for itself, also when they are cut short: keys of that
	 * name travel as key=value */
	char **main_words;
	size_t n_main_words;
	/* For `explain config`: how words of the command are keys (flags, dotted, kept, equals;
	 * NULL = they are none that moectl knows), and which files it names: flag or {entry} =
	 * "FORMAT [key that names one below it [file beside it]]" (lib/recipe/config_files.c). */
	char *config_words;
	struct kv *config_files;
	size_t n_config_files;
	/* a key in capitals behind it is a variable that says the key too: M_ of MaxText; NULL =
	 * none */
	char *config_variables;
	/* keys that name files which must be there = how (lib/recipe/config_inputs.c) */
	struct kv *inputs;
	size_t n_inputs;
	/* Trees of another version have a file of their own: a flag of engine.args, or a file of
	 * engine.workdir (with a slash) = the kind of that file. */
	struct kv *versions;
	size_t n_versions;
	/* NULL = none; freed by recipe_parse() when it has checked */
	struct engine_checks *checks;
};
/* Is it one of main_words, or the beginning of one? Dashes in front and what stands behind '='
 * do not matter. */
bool main_word_is(char *const *words, size_t n_words, const char *flag);
/* Its own configuration says values of the recipe: an experiment, or a file that its command
 * names. */
bool engine_has_values(const struct engine *e);
/* What such files are called for their writer: experiment, TOML, configuration. */
const char *engine_files_word(const struct engine *e);
/* What the engine means by an exit code; NULL = nothing in particular. */
const char *engine_exit_meaning(const struct engine *e, int64_t code);
extern const char *const metrics_rank_names[3];
extern const struct mo_desc line_rule_desc, ckpt_grid_desc, ckpt_need_desc, ckpt_layout_desc,
	engine_heartbeat_desc, engine_desc, engine_feature_desc, engine_rule_desc,
	engine_force_desc, engine_checks_desc;
