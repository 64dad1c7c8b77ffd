/* The order of launch of one attempt of a job on one node: everything that the agent and its
 * supervisor need, with the node's own ranks only, so that its size does not grow with the job.
 *
 * Made by the controller (daemon/core/rules/launch.c), sent with a sync until the node reports the
 * step, written to the agent's spool before anything acts on it (agent/core/agent), read by
 * moe-stepd, which resolves what only the node knows: paths, ports, users, devices.
 *
 * What never happens: it names a file of the controller's machine, or another node's ranks. */
#pragma once
#include "lib/base/desc.h"
#include "lib/model/container.h"
#include "lib/model/engine.h"

/* One variable of a rank's environment with its provenance; Env item of the REST interface. */
struct env_item {
	/* value NULL with file set: read on the node when the rank starts; both NULL: the rank
	 * does not get the variable at all */
	char *name, *value;
	char *reason, *source; /* why; which file/recipe line/launch rule */
	char *overrides;       /* value and layer it replaced, NULL = none */
	char *file;
	int layer; /* enum env_layer */
};
enum env_layer {
	ENV_IMAGE, /* what an image says of itself */
	ENV_BASE,
	ENV_PROFILE,
	ENV_ENGINE,
	ENV_FEATURE,
	ENV_RECIPE,
	ENV_LAUNCH,
	_ENV_LAYER_N
};
extern const char *const env_layer_names[_ENV_LAYER_N];
extern const struct mo_desc env_item_desc;

struct launch {
	int64_t job, attempt;
	char *name, *user;
	/* the submitter may run ranks as root; the agent must allow it too */
	bool allow_root;
	int64_t first_rank, n_local, world, node_rank, n_nodes;
	/* slots of this node, in order: one per local rank, or all of them for the one rank of
	 * the node */
	int64_t *gpus;
	size_t n_gpus;
	int64_t job_gpus; /* for rates per GPU */
	char *address;
	char *master_addr;
	int64_t master_port;
	/* this node has rank 0: its stepd holds the ports until the ranks start */
	bool hold_ports;
	char **argv;
	size_t n_argv;  /* final words, same for all ranks */
	char **prepare; /* as the user */
	size_t n_prepare;
	int64_t prepare_limit_us;
	bool times_prepare; /* the controller takes how long it took (note.prepare_ms) */
	bool prepare_hooks;
	/* flags that its extra.key lines may not give = what to write instead */
	struct kv *owned;
	size_t n_owned;
	/* engine.main_words: an extra of that name travels as key=value */
	char **main_words;
	size_t n_main_words;
	struct engine_heartbeat *heartbeat; /* dir resolved; NULL = none */
	/* engine.inputs, to be checked here before the ranks start; of an engine without an
	 * experiment with how its configuration is read. */
	struct kv *inputs;
	size_t n_inputs;
	char *config_words, *config_variables, *entry;
	struct kv *config_files;
	size_t n_config_files;
	/* format of the engine's own configuration, to be read here before the ranks start; NULL
	 * = none */
	char *config;
	/* text by whose rules it (or what config_files name) is judged then, as at the submit;
	 * NULL = it is only read */
	char *recipe;
	char *workdir; /* NULL = the user's home */
	/* the image whose files the ranks see; NULL = the node's own */
	struct recipe_container *container;
	/* base..recipe layers, already selected; on the node the image's is added, and per rank the
	 * launch layer */
	struct env_item *env;
	size_t n_env;
	struct recipe_bind bind;
	char *checkpoint_dir; /* NULL none */
	int64_t resume;       /* iteration resumed from, -1 = fresh */
	int64_t steps;        /* target, MO_NONE none */
	int64_t stop_signal, stop_grace_us;
	int metrics_rank; /* engine.metrics_rank */
	struct line_rule *rules;
	size_t n_rules;
	bool announced_is_complete;
	/* of checkpoint_dir: each save writes over the last one, and this node keeps a copy;
	 * NULL = none */
	struct ckpt_layout *keep;
};
extern const struct mo_desc launch_desc;

/* cause of a refusal: a job before it has not given back the node's GPUs */
#define LAUNCH_GPU_HELD "gpu-held"
