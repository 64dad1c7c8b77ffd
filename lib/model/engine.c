/* Descriptions and names of an engine file as a value. */
#include "lib/model/engine.h"

#include <string.h>

#include "lib/base/parse.h"

const char *const line_kind_names[_LINE_KIND_N] = { "sample", "phase",   "saved",
						    "saving", "resumed", "ended" };
const char *const engine_processes_names[_ENGINE_PROCESSES_N] = { "gpu", "node" };
const char *const ckpt_count_names[_CKPT_COUNT_N] = { "world", "divides" };
const char *const ckpt_format_names[_CKPT_FORMAT_N] = { "torch", "pickle", "json",   "safetensors",
							"ocdbt", "data",   "msgpack" };
const char *const metrics_rank_names[3] = { "first", "last", "any" };

static const struct mo_field line_rule_fields[] = {
	MO_D_ENUM(line_rule, kind, line_kind_names, "what such a line tells"),
	MO_D(line_rule, pattern, MO_STR, "PCRE2 that it matches"),
	MO_D(line_rule, begin, MO_STR, "PCRE2 that a line of pairs begins with", .omit = true),
	MO_D(line_rule, separator, MO_STR, "what stands between pairs", .omit = true),
	MO_D_VEC(line_rule, fields, &kv_desc, "key as printed, and the value that it is",
		 .omit = true),
	MO_D_VEC(line_rule, data_fields, &kv_desc,
		 "of a launch: the same of what says how much data was consumed", .omit = true),
	MO_D_LIST(line_rule, needs, MO_STRS, "values without which such a line says nothing",
		  .omit = true),
	MO_D(line_rule, phase, MO_STR, "phase that it begins"),
	MO_D(line_rule, iteration_offset, MO_INT, "what is added to its iteration", .omit = true),
	MO_D(line_rule, missing_loss_is_nan, MO_BOOL, "a line without loss says NaN"),
	MO_D(line_rule, of_steps, MO_BOOL,
	     "it counts only where it names the job's number of iterations", .omit = true),
};
const struct mo_desc line_rule_desc = MO_DESC(line_rule, line_rule_fields);

const char *const ckpt_fixed_names[CKPT_FIXED_N] = { "tp", "pp", "ep", "etp", "cp" };
static const struct mo_field ckpt_grid_fields[] = {
	MO_D(ckpt_grid, files, MO_STR, "PCRE2 on file names, whose groups are numbers"),
	MO_D_ENUM(ckpt_grid, count, ckpt_count_names, "how many there are, by the number of ranks",
		  .omit = true),
	MO_D(ckpt_grid, required, MO_BOOL, "there must be some", .omit = true),
	MO_D_LIST(ckpt_grid, says, MO_STRS,
		  "numbers in an archive whose product is how many there are", .omit = true),
	MO_D(ckpt_grid, tied, MO_STR,
	     "number with which ranks are counted instead of the first of says", .omit = true),
	MO_D_LIST(ckpt_grid, fixes, MO_STRS, "parallel sizes that these numbers are", .omit = true),
	MO_D_VEC(ckpt_grid, variants, &kv_desc,
		 "variant, and the number beside them that says whether it is there", .omit = true),
	MO_D(ckpt_grid, told_by, MO_STR,
	     "PCRE2 on names of archives that say something of this grid", .omit = true),
	MO_D_VEC(ckpt_grid, excused, &kv_desc,
		 "words before a number, with which there need be none", .omit = true),
	MO_D(ckpt_grid, share, MO_STR, "words before a number: so many ranks share a file",
	     .omit = true),
	MO_D(ckpt_grid, sum, MO_STR, "name of a list of numbers whose sum is how many there are",
	     .omit = true),
};
const struct mo_desc ckpt_grid_desc = MO_DESC(ckpt_grid, ckpt_grid_fields);

static const struct mo_field ckpt_need_fields[] = {
	MO_D(ckpt_need, file, MO_STR, "name of a file that must be there and not be empty"),
	MO_D(ckpt_need, each, MO_STR, "PCRE2 on file names: one for every match", .omit = true),
	MO_D(ckpt_need, unless, MO_STR, "PCRE2 on file names: not where such a file is",
	     .omit = true),
	MO_D(ckpt_need, unless_said, MO_STR,
	     "PCRE2 on the content of markers: not where one says so", .omit = true),
};
const struct mo_desc ckpt_need_desc = MO_DESC(ckpt_need, ckpt_need_fields);

static const struct mo_field ckpt_layout_fields[] = {
	MO_D(ckpt_layout, entry, MO_STR,
	     "PCRE2 on the name of a checkpoint, with a group iteration"),
	MO_D(ckpt_layout, subdir, MO_STR, "directory that holds them, below checkpoint.dir"),
	MO_D(ckpt_layout, tracker, MO_STR, "file with the newest iteration"),
	MO_D(ckpt_layout, tracker_names_entry, MO_BOOL,
	     "it holds the name of the checkpoint instead", .omit = true),
	MO_D(ckpt_layout, by_tracker, MO_STR,
	     "PCRE2 on file names: loaded only while the tracker names it", .omit = true),
	MO_D_LIST(ckpt_layout, markers, MO_STRS, "files that must be there and not be empty"),
	MO_D(ckpt_layout, shard, MO_STR, "PCRE2 on names of files that must not be empty"),
	MO_D(ckpt_layout, marker_last, MO_BOOL,
	     "files newer than the marker mean a half replaced checkpoint"),
	MO_D(ckpt_layout, announced_is_complete, MO_BOOL, "an announcement counts as the marker"),
	MO_D(ckpt_layout, unfinished, MO_STR, "PCRE2 on the name of one whose save never ended",
	     .omit = true),
	MO_D(ckpt_layout, leftover, MO_STR,
	     "PCRE2 on names of files that are there while a save is under way", .omit = true),
	MO_D(ckpt_layout, listed, MO_STR,
	     "PCRE2 in the markers: each match is a file that must be there", .omit = true),
	MO_D(ckpt_layout, contains, MO_STR, "PCRE2 that a marker must hold", .omit = true),
	MO_D_LIST(ckpt_layout, listed_bytes, MO_STRS,
		  "names of the numbers whose sum is the least size of a listed file",
		  .omit = true),
	MO_D_VEC(ckpt_layout, grids, &ckpt_grid_desc, "files that ranks or groups of ranks write",
		 .omit = true),
	MO_D_VEC(ckpt_layout, needs, &ckpt_need_desc, "single files that must be there",
		 .omit = true),
	MO_D_VEC(ckpt_layout, formats, &kv_desc,
		 "PCRE2 on file names, and the format that such a file has", .omit = true),
	MO_D_VEC(ckpt_layout, members, &kv_desc, "members that a marker's JSON object must have",
		 .omit = true),
	MO_D_VEC(ckpt_layout, iterations, &kv_desc,
		 "PCRE2 on names of archives, and the words before its iteration", .omit = true),
	MO_D_LIST(ckpt_layout, state_names, MO_STRS,
		  "endings of names of what looks like a model's state", .omit = true),
	MO_D(ckpt_layout, state_bytes, MO_INT, "smallest size of that, bytes", .omit = true),
	MO_D_LIST(ckpt_layout, state_words, MO_STRS,
		  "names of the number in such a file that is its iteration", .omit = true),
	MO_D(ckpt_layout, beside, MO_STR,
	     "PCRE2 on names of files that a run writes beside its state", .omit = true),
	MO_D(ckpt_layout, given, MO_BOOL, "the recipe gave this layout", .omit = true),
	MO_D(ckpt_layout, unnumbered, MO_BOOL, "each save writes over the last one", .omit = true),
};
const struct mo_desc ckpt_layout_desc = MO_DESC(ckpt_layout, ckpt_layout_fields);

static const struct mo_field engine_heartbeat_fields[] = {
	MO_D(engine_heartbeat, dir, MO_STR,
	     "directory of the files, below engine.workdir or absolute"),
	MO_D(engine_heartbeat, file, MO_STR, "PCRE2 on their names, with {rank}"),
	MO_D(engine_heartbeat, iteration, MO_STR, "member with the iteration that ended"),
	MO_D(engine_heartbeat, event, MO_STR, "member that names what happens"),
	MO_D(engine_heartbeat, done, MO_STR,
	     "event in whose lines the iteration counts; null: in all"),
	MO_D_VEC(engine_heartbeat, phases, &kv_desc, "event, and the phase that it is"),
};
const struct mo_desc engine_heartbeat_desc = MO_DESC(engine_heartbeat, engine_heartbeat_fields);

static const struct mo_field engine_feature_fields[] = {
	MO_D(engine_feature, when, MO_STR,
	     "path of the feature, or path=value, with which it comes"),
	MO_D(engine_feature, reason, MO_STR, "why the variables are set"),
	MO_D_VEC(engine_feature, env, &kv_desc, "variables that it brings, by name"),
};
const struct mo_desc engine_feature_desc = MO_DESC(engine_feature, engine_feature_fields);

static const struct mo_field engine_rule_fields[] = {
	MO_D(engine_rule, id, MO_STR, "name of the rule"),
	MO_D(engine_rule, because, MO_STR, "why the engine cannot do that"),
	MO_D(engine_rule, instead, MO_STR, "what to do about it"),
	MO_D(engine_rule, files_may, MO_BOOL,
	     "broken by the engine's own files alone it is a warning", .omit = true),
	MO_D(engine_rule, warns, MO_BOOL, "it is a warning whoever breaks it", .omit = true),
	MO_D_VEC(engine_rule, when, &kv_desc,
		 "it counts while all of these hold: path, and the values that it has"),
	MO_D_VEC(engine_rule, refuse, &kv_desc, "none of these may hold then"),
	MO_D_VEC(engine_rule, need, &kv_desc, "all of these must hold then"),
};
const struct mo_desc engine_rule_desc = MO_DESC(engine_rule, engine_rule_fields);

static const struct mo_field force_fields[] = {
	MO_D(engine_force, because, MO_STR, "where the engine sets them"),
	MO_D_VEC(engine_force, when, &kv_desc, "conditions on its keys that all hold"),
	MO_D_VEC(engine_force, set, &kv_desc, "its keys, and the values that it gives them"),
};
const struct mo_desc engine_force_desc = MO_DESC(engine_force, force_fields);

static const struct mo_field engine_checks_fields[] = {
	MO_D_VEC(engine_checks, missing, &kv_desc,
		 "what it has no setting for, and what to do about it"),
	MO_D_VEC(engine_checks, rules, &engine_rule_desc, "what does not go together"),
	MO_D_LIST(engine_checks, keys, MO_STRS, "flags that it knows, without dashes"),
	MO_D_LIST(engine_checks, layout_flags, MO_STRS, "flags that say how layers are divided"),
	MO_D_LIST(engine_checks, outputs, MO_STRS, "flags that name a directory it writes to",
		  .omit = true),
	MO_D_LIST(engine_checks, data_parallel, MO_STRS, "flags of replicas and of shards",
		  .omit = true),
	MO_D_LIST(engine_checks, keys_older, MO_STRS, "flags of earlier releases that are gone",
		  .omit = true),
	MO_D(engine_checks, keys_source, MO_STR, "version that the flags were read from"),
	MO_D(engine_checks, keys_complete, MO_BOOL,
	     "these are all: it refuses its own files with others"),
	MO_D(engine_checks, keys_more, MO_STR, "key whose value brings keys that nobody knows",
	     .omit = true),
	MO_D_VEC(engine_checks, renamed, &kv_desc, "old flag, and the new one or what to do"),
	MO_D_VEC(engine_checks, last_save_off, &kv_desc,
		 "flag, and the condition with which the last state is not saved", .omit = true),
	MO_D_VEC(engine_checks, types, &kv_desc,
		 "int, float, bool or words between |, and the keys of that type", .omit = true),
	MO_D_VEC(engine_checks, names, &kv_desc,
		 "key if conditions, and the names that the engine has", .omit = true),
	MO_D_VEC(engine_checks, plan, &kv_desc,
		 "what plans know: trait or trait=value, and the keys that say so", .omit = true),
	MO_D_LIST(engine_checks, plan_like, MO_STRS, "kinds whose rows of plan follow",
		  .omit = true),
	MO_D(engine_checks, plan_given, MO_BOOL, "the file has rows of plan", .omit = true),
	MO_D_VEC(engine_checks, untold, &kv_desc,
		 "recipe value, and what it takes when its command leaves it out", .omit = true),
	MO_D_VEC(engine_checks, module_names, &kv_desc,
		 "module of argv, and its name in newer trees", .omit = true),
};
const struct mo_desc engine_checks_desc = MO_DESC(engine_checks, engine_checks_fields);

static const struct mo_field engine_fields[] = {
	MO_D(engine, kind, MO_STR, "name of the file"),
	MO_D(engine, title, MO_STR, "what it is, for people"),
	MO_D(engine, source, MO_STR, "version of the engine that it was read from"),
	MO_D(engine, python, MO_STR, "default interpreter"),
	MO_D(engine, entry, MO_STR, "default script; null: the recipe must say"),
	MO_D_LIST(engine, argv, MO_STRS,
		  "words of a rank's command, with {python} {entry} {args} {argv}"),
	MO_D(engine, args_equals, MO_BOOL, "a mapping of arguments becomes key=value words"),
	MO_D_VEC(engine, flags, &kv_desc, "recipe value, and the words that say it"),
	MO_D_LIST(engine, resume, MO_STRS,
		  "words added when an attempt resumes from {iteration} in {dir}"),
	MO_D_LIST(engine, fresh, MO_STRS, "words added when an attempt starts afresh"),
	MO_D_LIST(engine, skip, MO_STRS,
		  "words by which it leaves out the data of {iterations}; none: it cannot",
		  .omit = true),
	MO_D_VEC(engine, env, &kv_desc, "variables of its layer, by name"),
	MO_D_VEC(engine, env_reason, &kv_desc, "variable, and why it is set"),
	MO_D_ENUM(engine, metrics_rank, metrics_rank_names, "rank whose samples count"),
	MO_D_VEC(engine, rules, &line_rule_desc, "rules by which printed lines are read"),
	MO_D_SUB(engine, layout, MO_STRUCT, &ckpt_layout_desc,
		 "where checkpoints lie and when one is complete"),
	MO_D(engine, has_layout, MO_BOOL, "the file says how checkpoints lie"),
	MO_D(engine, needs_steps, MO_BOOL, "the recipe must say how many iterations there are"),
	MO_D_VEC(engine, exit_codes, &kv_desc, "exit code, and what it means"),
	MO_D_ENUM(engine, processes, engine_processes_names,
		  "a rank per GPU, or one per node with all its GPUs"),
	MO_D_LIST(engine, prepare, MO_STRS,
		  "words of a program run once per node before the ranks"),
	MO_D(engine, prepare_limit_us, MO_INT, "longest time of that, microseconds; null: 600 s"),
	MO_D(engine, prepare_hooks, MO_BOOL,
	     "lines of that change environment and command of the ranks"),
	MO_D_SUB(engine, heartbeat, MO_STRUCT, &engine_heartbeat_desc,
		 "file per rank that it writes while it works"),
	MO_D_LIST(engine, may_change, MO_STRS, "recipe paths that a resume may give other values"),
	MO_D(engine, stop_saves, MO_BOOL, "the stop signal saves a checkpoint"),
	MO_D(engine, dump_key, MO_STR, "key with which it writes what its pipeline did; null: none",
	     .omit = true),
	MO_D(engine, dump_in, MO_STR, "where that lies, for people", .omit = true),
	MO_D(engine, stop_signal, MO_INT, "number of the signal of a planned stop; null: SIGTERM"),
	MO_D_VEC(engine, owned, &kv_desc,
		 "flag that moectl decides itself, and what to write instead", .omit = true),
	MO_D(engine, even_layers, MO_BOOL, "stages of a pipeline hold equally many layers",
	     .omit = true),
	MO_D(engine, bool_words, MO_BOOL, "truth values of arguments are words", .omit = true),
	MO_D_VEC(engine, features, &engine_feature_desc,
		 "variables that features of the recipe bring", .omit = true),
	MO_D(engine, experiment, MO_STR,
	     "format of the configuration that its command names; null: none", .omit = true),
	MO_D_VEC(engine, experiment_values, &kv_desc,
		 "recipe path or path=value, and which of its keys say so", .omit = true),
	MO_D(engine, experiment_framework, MO_STR,
	     "framework that an experiment must be of; null: any", .omit = true),
	MO_D(engine, save_below, MO_STR,
	     "directory that it adds below the path of checkpoints; null: none", .omit = true),
	MO_D(engine, save_key, MO_STR, "key of its configuration without which nothing is saved",
	     .omit = true),
	MO_D_VEC(engine, save_names, &kv_desc,
		 "names that make that path, outermost first, and their variables", .omit = true),
	MO_D_LIST(engine, experiment_no_model, MO_STRS,
		  "conditions of which each makes a model that plans do not know", .omit = true),
	MO_D_LIST(engine, experiment_plan_keys, MO_STRS,
		  "keys of its configuration that plans read", .omit = true),
	MO_D_LIST(engine, experiment_keys, MO_STRS,
		  "keys of its configuration that rules and flags read", .omit = true),
	MO_D_VEC(engine, forced, &engine_force_desc,
		 "what it sets itself before it trains, in its own order", .omit = true),
	MO_D_LIST(engine, main_words, MO_STRS,
		  "flags that its program takes for itself, also cut short", .omit = true),
	MO_D(engine, config_words, MO_STR,
	     "how words of the command are keys: flags, dotted, kept or equals; null: they are "
	     "none",
	     .omit = true),
	MO_D_VEC(engine, config_files, &kv_desc, "flag that names a file, and the format of that",
		 .omit = true),
	MO_D(engine, config_variables, MO_STR,
	     "beginning of variables that say keys too; null: none do", .omit = true),
	MO_D_VEC(engine, inputs, &kv_desc, "keys that name files which must be there, and how",
		 .omit = true),
	MO_D_VEC(engine, versions, &kv_desc,
		 "flag or file that tells another version, and the kind of that", .omit = true),
	MO_D_SUB(engine, checks, MO_OPT, &engine_checks_desc,
		 "what only checks of a recipe need; null: they are over", .omit = true),
};
const struct mo_desc engine_desc = MO_DESC(engine, engine_fields);

bool main_word_is(char *const *words, size_t n_words, const char *flag)
{
	const char *name = flag + strspn(flag, "-");
	size_t n = strcspn(name, "=");

	for (size_t i = 0; i < n_words && n; i++)
		if (strncmp(words[i], name, n) == 0)
			return true;
	return false;
}

bool engine_has_values(const struct engine *e)
{
	return e->experiment || e->n_experiment_values;
}

const char *engine_files_word(const struct engine *e)
{
	bool toml = e->n_config_files == 1 && mo_streq(e->config_files[0].value, "toml");

	return e->experiment ? "experiment" : toml ? "TOML" : "configuration";
}

const char *engine_exit_meaning(const struct engine *e, int64_t code)
{
	int64_t n;

	for (size_t i = 0; i < e->n_exit_codes; i++)
		if (mo_parse_i64(e->exit_codes[i].key, 1, 255, &n) == 0 && n == code)
			return e->exit_codes[i].value;
	return NULL;
}
