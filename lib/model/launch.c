/* Descriptions of a launch order. An env_item's first five keys are the Env item of the REST
 * interface; file and layer stay out of it while unknown. */
#include "lib/model/launch.h"

#include "lib/model/limits.h"

const char *const env_layer_names[_ENV_LAYER_N] = { "base",    "profile", "engine",
						    "feature", "recipe",  "launch" };

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
	MO_F(launch, job, MO_INT),
	MO_F(launch, attempt, MO_INT),
	MO_F(launch, name, MO_STR),
	MO_F(launch, user, MO_STR),
	MO_F(launch, allow_root, MO_BOOL),
	MO_F(launch, first_rank, MO_INT),
	MO_F(launch, n_local, MO_INT),
	MO_F(launch, world, MO_INT),
	MO_F(launch, node_rank, MO_INT),
	MO_F(launch, n_nodes, MO_INT),
	MO_F_LIST(launch, gpus, MO_INTS, .max = MO_GPUS_PER_NODE_MAX),
	MO_F(launch, job_gpus, MO_INT, .omit = true),
	MO_F(launch, address, MO_STR, .omit = true),
	MO_F(launch, master_addr, MO_STR),
	MO_F(launch, master_port, MO_INT),
	MO_F(launch, hold_ports, MO_BOOL),
	MO_F_LIST(launch, argv, MO_STRS),
	MO_F_LIST(launch, prepare, MO_STRS, .omit = true),
	MO_F(launch, prepare_limit_us, MO_INT, .omit = true),
	MO_F(launch, times_prepare, MO_BOOL, .omit = true),
	MO_F(launch, prepare_hooks, MO_BOOL, .omit = true),
	MO_F(launch, config, MO_STR, .omit = true),
	MO_F(launch, recipe, MO_STR, .omit = true, .max = MO_RECIPE_BYTES_MAX),
	MO_F_VEC(launch, inputs, &kv_desc, .omit = true),
	MO_F(launch, config_words, MO_STR, .omit = true),
	MO_F(launch, config_variables, MO_STR, .omit = true),
	MO_F(launch, entry, MO_STR, .omit = true),
	MO_F_VEC(launch, config_files, &kv_desc, .omit = true),
	MO_F_VEC(launch, owned, &kv_desc, .omit = true),
	MO_F_LIST(launch, main_words, MO_STRS, .omit = true),
	MO_F_SUB(launch, heartbeat, MO_OPT, &engine_heartbeat_desc, .omit = true),
	MO_F(launch, workdir, MO_STR),
	MO_F_VEC(launch, env, &env_item_desc),
	MO_F_SUB(launch, bind, MO_STRUCT, &recipe_bind_desc),
	MO_F(launch, checkpoint_dir, MO_STR),
	MO_F(launch, resume, MO_INT),
	MO_F(launch, steps, MO_INT),
	MO_F(launch, stop_signal, MO_INT),
	MO_F(launch, stop_grace_us, MO_INT),
	MO_F_ENUM(launch, metrics_rank, metrics_rank_names),
	MO_F_VEC(launch, rules, &line_rule_desc),
	MO_F(launch, announced_is_complete, MO_BOOL),
	MO_F_SUB(launch, keep, MO_OPT, &ckpt_layout_desc, .omit = true),
};
const struct mo_desc launch_desc = MO_DESC(launch, launch_fields);
