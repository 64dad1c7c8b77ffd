/* The planner: a recipe and a GPU type -> parameter counts, memory, step time, scaling and
 * failures. Pure: the same call serves `moectl plan`, admission and the simulator. Formulas and
 * their sources: docs/planner.md. */
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
	/* Young's interval, for comparison with the one taken, Daly's */
	double young_s;
	/* there is a free one for spare_target (95 %) of failures while others are repaired */
	int64_t spare_nodes;
	double spare_target;
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
extern const struct mo_desc plan_stage_desc, plan_desc, plan_reliability_desc, plan_doc_desc;

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
#define PLAN_SCALE_MAX 64
/* of a recipe that names none, as those of ranks on CPUs: it knows every precision */
#define PLAN_GPU_ASSUMED "mi355x"
#define PLAN_GPUS_MAX MO_RANKS_MAX
/* What people write for scale and tokens, on a command line and in a query string: "64,128,256";
 * "15T", "500B", "30M", "2.5e12". 0 or -EINVAL with err: what is wrong and what would do. */
int plan_scale_parse(const char *text, int64_t ret[static PLAN_SCALE_MAX], size_t *ret_n,
		     struct mo_error *err);
int plan_tokens_parse(const char *text, double *ret, struct mo_error *err);
/* "rate=6.5,restart=5m,repair=3d,spares=95%,save=30s": any of them. */
int plan_failures_parse(const char *text, struct plan_failures *ret, struct mo_error *err);
/* "leaf=256,spine=2" */
int plan_fabric_parse(const char *text, struct plan_fabric *ret, struct mo_error *err);
/* ret must be initialised by mo_desc_init(&plan_doc_desc). The recipe must have passed
 * recipe_parse(). Needs model, batch.seq and batch.global. Explicit parallelism: exactly one
 * plan, fitting or not. `parallelism: auto`: a search, plans that fit first. -EINVAL with err
 * when nothing can be planned, which is so while the sharding is an experiment's that was not
 * read. */
int plan_make(const struct recipe *r, const struct gpu_type *gpu, const struct plan_options *o,
	      struct plan_doc *ret, struct mo_error *err);
/* The recomputation that the recipe fixes, itself or by the engine's own flags in engine.args;
 * NULL: a search chooses. */
const char *plan_recompute_given(const struct recipe *r);
/* Writes what was left to the planner into the recipe: the best plan's sharding, batch.micro and
 * recompute for `parallelism: auto`, iterations for `checkpoint.every: auto`. */
void plan_apply(const struct plan_doc *doc, struct recipe *r);
/* Behind plan_apply(), for engines that need it said (even_layers): where the search chose
 * stages that do not divide the layers, features.pipeline_layout becomes what it counted. */
void plan_apply_layout(struct recipe *r);

/* Admission: refused is only what exceeds memory by its states alone; what does not fit
 * otherwise is a warning with the table and the nearest plan that fits. *ret_text: NULL when it
 * fits. */
enum plan_verdict { PLAN_ADMIT, PLAN_WARN, PLAN_REFUSE };
enum plan_verdict plan_admit(const struct recipe *r, const struct plan_doc *doc, char **ret_text);

/* Parameter counts of a model (params.c). */
struct params {
	double attention; /* weights of one layer's attention, norms included */
	double dense_ffn, expert, shared, router; /* of one layer; expert = one expert */
	double embedding;                         /* V h, once */
	double total, active;                     /* whole model without MTP */
	double mtp;                               /* weights of all MTP layers */
};
struct params plan_params(const struct recipe_model *m);
/* Layers of [first, last) that have experts; 0 for a dense model. */
int64_t plan_moe_layers(const struct recipe_model *m, int64_t first, int64_t last);
/* Forward + backward FLOPs of one token at sequence length seq: 6 per active weight (embedding
 * look-up excluded) and causal attention counted half. */
double plan_flops_per_token(const struct recipe_model *m, int64_t seq);
/* Fraction of the pipelined part that is bubble; micro_batches per pipeline and step. schedule
 * NULL: 1f1b, interleaved when vpp > 1. */
double plan_bubble(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches);
/* Daly's interval between checkpoints for a blocking save of save_s and a mean time between
 * failures of mttf_s. */
double plan_daly_s(double save_s, double mttf_s);
double plan_young_s(double save_s, double mttf_s);
/* Share of time that is kept, failures exponential: every interval of work is followed by a
 * save; a failure costs the restart and the work since the last save. */
double plan_ettr(double interval_s, double save_s, double restart_s, double mttf_s);
/* Fewest spares such that with the given mean number under repair the chance that they suffice
 * is target. */
int64_t plan_spares(double mean_under_repair, double target);
