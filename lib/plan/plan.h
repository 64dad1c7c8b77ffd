/* The planner: a recipe and a GPU type -> parameter counts, memory, step time, scaling and
 * failures. Pure; formulas and their sources: docs/planner.md.
 *
 * Called by `moectl plan`, by moed where a recipe leaves its sizes to it (in a process of its own:
 * daemon/helper.c) and for admission, by simulator and benchmarks: the same numbers everywhere.
 * plan_apply() writes what it chose into the recipe. What it knows of engines are traits
 * (lib/model/traits.h), what calibrates it are measured runs (struct plan_anchor).
 *
 * What never happens: a number without a source, an engine known by its name, another result on
 * another machine. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/gpu.h"
#include "lib/model/limits.h"
#include "lib/model/recipe.h"

/* total without MTP layers; active with both embeddings */
struct plan_model {
	int64_t total_params, active_params;
	double flops_per_token;
};
struct plan_hardware {
	char *gpu;
	int64_t gpus;
};
struct plan_parallelism {
	int64_t tp, pp, vpp, ep, etp, cp, dp;
	char *sharding;
};
struct plan_batch {
	int64_t micro, global, seq;
};
/* 10^9 bytes, of the fullest rank */
struct plan_memory {
	double total, params, grads, optimizer, activations, comm, reserve, capacity;
};
/* parameters: of the whole stage, MTP included; 10^9 bytes of a rank of it */
struct plan_stage {
	int64_t stage, layers;
	double total, params, grads, optimizer, activations, comm, reserve;
	int64_t parameters;
};
/* seconds; the parts add up to total; pp holds the bubble */
struct plan_time {
	double total, compute, a2a, pp, dp, cp, tp, optimizer, launch;
};
struct plan {
	struct plan_parallelism parallelism;
	struct plan_batch batch;
	char *recompute, *schedule;
	struct plan_memory memory_gb;
	struct plan_stage *memory_stages;
	size_t n_memory_stages;
	bool fits;
	double bubble; /* fraction of the pipelined part of the step */
	struct plan_time step_time_s;
	double tokens_per_s_per_gpu, tflops_per_gpu, mfu;
	/* of the step time: four of five comparable runs are within */
	double error_pct;
	char **notes;
	size_t n_notes;
};
/* days: for the budget of tokens; note: the plan of this size, or why it has no figures; both
 * may be left out */
struct plan_scale {
	int64_t gpus;
	double efficiency, step_time_s, mfu, days;
	char *note;
};
/* gpu_hours_per_day: gained against the first row */
struct plan_restart {
	double restart_s, ettr, gpu_hours_per_day;
};
struct plan_reliability {
	double failures_per_day, checkpoint_every_s, ettr;
	double checkpoint_gb; /* weights and optimizer states; MO_NONE_F: most of them are frozen */
	/* Young's interval, for comparison with the one taken, Daly's */
	double young_s;
	/* there is a free one for spare_target (95 %) of failures while others are repaired */
	int64_t spare_nodes;
	double spare_target;
	/* cluster.spares, their GPUs, and the share that these have of the GPU-seconds that the job
	 * takes; MO_NONE: it keeps none */
	int64_t kept_nodes, kept_gpus;
	double kept_share;
	double ettr_fast_restart; /* with restarts of a minute */
	struct plan_restart *restarts;
	size_t n_restarts; /* the one assumed, and faster ones */
	char **notes;
	size_t n_notes;
};
struct plan_doc {
	struct plan_model model;
	struct plan_hardware hardware;
	struct plan *plans;
	size_t n_plans; /* best first */
	struct plan_scale *scaling;
	size_t n_scaling;
	struct plan_reliability reliability;
};

/* What is assumed of failures; 0 = what reliability.c says. rate: per 1000 node-days; save_s:
 * how long a save blocks the training. */
struct plan_failures {
	double rate, restart_s, repair_s, spare_target, save_s;
};
/* The network between nodes. leaf_gpus: GPUs below one leaf switch (of each rail); spine: how
 * many times more bandwidth a leaf has below than above it; 0 or 1: none is lost. */
struct plan_fabric {
	int64_t leaf_gpus;
	double spine;
};
struct plan_options {
	int64_t gpus; /* instead of cluster.gpus; 0 = the recipe's */
	int64_t top;  /* plans of a search, at most; 0 = 5 */
	const int64_t *scale;
	size_t n_scale; /* sizes for scaling[] */
	/* output of rccl-tests' alltoall_perf and all_reduce_perf between nodes: instead of the
	 * catalogue's bandwidth; NULL = none */
	const char *alltoall, *reduce;
	struct plan_failures failures;
	struct plan_fabric fabric;
	double tokens; /* budget for scaling[].days; 0 = none */
	/* that the engine has flags for, for a search; none = zero1 */
	const char *const *shardings;
	size_t n_shardings;
	/* alone: no notes on other choices, which take longer than the plan */
	bool figures;
	/* the engine knows only stages of equally many layers: for a search */
	bool even_layers;
	/* Why the recipe could not have the sizes, schedule and recomputation of a plan,
	 * borrowed until the next call; NULL: it can. For a search and for what would be better;
	 * NULL: all pass. */
	const char *(*refuses)(void *arg, const struct plan *p);
	void *refuses_arg;
	/* a search over all schedules and shardings that exist, not only those that engines have
	 * flags for */
	bool open;
};
/* of a recipe that names none, as those of ranks on CPUs: it knows every precision */
#define PLAN_GPU_ASSUMED "mi355x"
#define PLAN_GPUS_MAX MO_RANKS_MAX
/* ret must be initialised by mo_desc_init(&plan_doc_desc). The recipe must have passed
 * recipe_parse(). Needs model, batch.seq and batch.global. Explicit parallelism: exactly one
 * plan, fitting or not. `parallelism: auto`: a search, plans that fit first. -EINVAL with err
 * when nothing can be planned, which is so while the sharding is an experiment's that was not
 * read. */
int plan_make(const struct recipe *r, const struct gpu_type *gpu, const struct plan_options *o,
	      struct plan_doc *ret, struct mo_error *err);
/* Writes what was left to the planner into the recipe: the best plan's sharding, batch.micro and
 * recompute for `parallelism: auto`, iterations for `checkpoint.every: auto`. */
void plan_apply(const struct plan_doc *doc, struct recipe *r);
/* Behind plan_apply(), for engines that need it said (even_layers): where the search chose
 * stages that do not divide the layers, features.pipeline_layout becomes what it counted. */
void plan_apply_layout(struct recipe *r);
