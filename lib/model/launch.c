/* Descriptions of a launch order. An env_item's first five keys are the Env item of the REST
 * interface; file and layer stay out of it while unknown. */
#include "lib/model/launch.h"

#include "lib/model/limits.h"
#include "lib/model/recipe.h"

const char *const env_layer_names[_ENV_LAYER_N] = { "image",   "base",   "profile", "engine",
						    "feature", "recipe", "launch" };

static const struct mo_field env_item_fields[] = {
	MO_D(env_item, name, MO_STR, "name of the variable"),
	MO_D(env_item, value, MO_STR, "its value; null: it is not set, or read from a file"),
	MO_D(env_item, reason, MO_STR, "why it is set so"),
	MO_D(env_item, source, MO_STR, "where that is known from"),
	MO_D(env_item, overrides, MO_STR, "what it would be otherwise, and by whom"),
	MO_D(env_item, file, MO_STR, "file on the node that its value is read from", .omit = true),
	MO_D_ENUM(env_item, layer, env_layer_names, "who says it; later layers win", .omit = true),
};
const struct mo_desc env_item_desc = MO_DESC(env_item, env_item_fields);

static const struct mo_field launch_fields[] = {
	MO_D(launch, job, MO_INT, "number of the job"),
	MO_D(launch, attempt, MO_INT, "number of the attempt"),
	MO_D(launch, name, MO_STR, "name of the job"),
	MO_D(launch, user, MO_STR, "account of the ranks; null: the agent's own"),
	MO_D(launch, allow_root, MO_BOOL, "the submitter may run ranks as root"),
	MO_D(launch, first_rank, MO_INT, "number of the first rank on this node"),
	MO_D(launch, n_local, MO_INT, "ranks on this node"),
	MO_D(launch, world, MO_INT, "ranks of the job"),
	MO_D(launch, node_rank, MO_INT, "number of this node in the job"),
	MO_D(launch, n_nodes, MO_INT, "nodes of the job"),
	MO_D_LIST(launch, gpus, MO_INTS, "slots of this node, in the order of its ranks",
		  .max = MO_GPUS_PER_NODE_MAX),
	MO_D(launch, job_gpus, MO_INT, "GPUs of the job; none: as many as ranks", .omit = true),
	MO_D(launch, address, MO_STR, "address of this node, as others reach it", .omit = true),
	MO_D(launch, master_addr, MO_STR, "address of the node of rank 0"),
	MO_D(launch, master_port, MO_INT, "first of four ports in a row"),
	MO_D(launch, hold_ports, MO_BOOL,
	     "this node has rank 0 and holds the ports until the ranks start"),
	MO_D_LIST(launch, argv, MO_STRS, "words of the command"),
	MO_D_LIST(launch, prepare, MO_STRS,
		  "words of a command that runs once here before the ranks", .omit = true),
	MO_D(launch, prepare_limit_us, MO_INT, "microseconds that it may take", .omit = true),
	MO_D(launch, times_prepare, MO_BOOL, "how long it took is wanted", .omit = true),
	MO_D(launch, prepare_hooks, MO_BOOL,
	     "its lines env.NAME=VALUE and extra.key=value are taken", .omit = true),
	MO_D(launch, config, MO_STR,
	     "format of the engine's own configuration, to be read here before the ranks start",
	     .omit = true),
	MO_D(launch, recipe, MO_STR, "text by whose rules that is judged", .omit = true,
	     .max = MO_RECIPE_BYTES_MAX),
	MO_D_VEC(launch, inputs, &kv_desc, "files that are checked here before the ranks start",
		 .omit = true),
	MO_D(launch, config_words, MO_STR, "how words of the command name its configuration",
	     .omit = true),
	MO_D(launch, config_variables, MO_STR, "how variables name it", .omit = true),
	MO_D(launch, entry, MO_STR, "engine.entry", .omit = true),
	MO_D_VEC(launch, config_files, &kv_desc, "files of the configuration", .omit = true),
	MO_D_VEC(launch, owned, &kv_desc,
		 "flags that engine.prepare may not give, and what to write instead", .omit = true),
	MO_D_LIST(launch, main_words, MO_STRS, "names whose value travels as key=value",
		  .omit = true),
	MO_D_SUB(launch, heartbeat, MO_OPT, &engine_heartbeat_desc,
		 "file per rank that the engine itself writes", .omit = true),
	MO_D(launch, workdir, MO_STR, "directory that the ranks start in; null: the user's home"),
	MO_D_SUB(launch, container, MO_OPT, &recipe_container_desc,
		 "the image whose files the ranks see", .omit = true),
	MO_D_VEC(launch, env, &env_item_desc, "variables up to the recipe's layer"),
	MO_D_SUB(launch, bind, MO_STRUCT, &recipe_bind_desc, "how ranks are bound"),
	MO_D(launch, checkpoint_dir, MO_STR, "checkpoint.dir"),
	MO_D(launch, resume, MO_INT, "iteration that is resumed from, -1 = from the beginning"),
	MO_D(launch, steps, MO_INT, "iterations to run"),
	MO_D(launch, stop_signal, MO_INT, "signal of a planned stop"),
	MO_D(launch, stop_grace_us, MO_INT, "microseconds until SIGKILL"),
	MO_D_ENUM(launch, metrics_rank, metrics_rank_names, "rank whose metrics count"),
	MO_D_VEC(launch, rules, &line_rule_desc, "how the engine's lines are read"),
	MO_D(launch, announced_is_complete, MO_BOOL, "a checkpoint that is announced is complete"),
	MO_D_SUB(launch, keep, MO_OPT, &ckpt_layout_desc,
		 "layout in which each save writes over the last one, so that a copy is kept",
		 .omit = true),
};
const struct mo_desc launch_desc = MO_DESC(launch, launch_fields);
