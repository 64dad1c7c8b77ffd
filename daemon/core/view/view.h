/* The documents of the REST interface, made from state: pure functions into described structs.
 *
 * Called by the handlers of routes (daemon/api_*.c), which have lib/wire make JSON of them, and by
 * tests. A view is made empty by mo_desc_init(), filled here and freed by mo_desc_done(). Keys and
 * their order are those of docs/rest.md, which is made from the rows: one is added as optional and
 * never renamed.
 *
 * What never happens: a question changes anything; what is not known is shown as zero; a view
 * decides again what a rule has decided. */
#pragma once
#include "daemon/core/view/plan_drift.h"
#include "daemon/core/state/interval.h"
#include "daemon/core/state/state.h"
#include "daemon/core/state/waiting.h"
#include "daemon/core/view/node_state.h"

struct newest_checkpoint {
	int64_t iteration;
	char *path;
	bool verified;
};
struct prepare_view {
	char *text;
	double gpu_s;
	struct prepared *nodes;
	size_t n_nodes;
};
extern const struct mo_desc prepare_view_desc;
struct job_view {
	int64_t id;
	char *name;
	int state;
	int64_t attempt, restarts, iteration, steps;
	struct job_shown shown;
	int64_t ranks;
	char **nodes;
	size_t n_nodes;
	int64_t created_at, started_at, ended_at;
	double eta_s;
	char *reason;
	struct newest_checkpoint *checkpoint;
	char *user;
	int64_t priority;
	int phase;
	int64_t resume;
	/* NULL, unknown: not of this job */
	int64_t samples_left_out;
	struct interval *checkpoint_every;
	struct actual *plan; /* of one with a promise */
	struct prepare_view *prepare;
	char *checkpoint_late;
	int64_t resumes_at;
	struct waiting *waiting;
};
struct node_check {
	char *check, *object, *state, *text, *next;
	bool known, held;
	int64_t since;
	char **evidence;
	size_t n_evidence;
};
struct node_view {
	char *name;
	int state;
	char *reason;
	int64_t gpus, cpus, numa_nodes;
	char **jobs;
	size_t n_jobs;
	int64_t heartbeat_age_ms;
	struct node_check *checks;
	size_t n_checks;
	double lemon_score;
	char *boot_id, *version, *address, *gpu_model;
	int64_t gpus_free;
	int health; /* enum check_state */
	int64_t findings, checks_ok;
	char *refuses, *next; /* refusal.h */
	bool cordoned;
	int64_t learn_until; /* health.learn */
	char *would_cordon, *would_next;
	char **unknown_steps;
	size_t n_unknown_steps;
	/* this and all below, and findings in checks: only in GET /v1/nodes/{name} */
	struct nodeinfo *info;
	bool preflight_done;
	struct stack_item *stack;
	size_t n_stack;
	struct gpu_sensors *sensors;
	size_t n_sensors; /* filled by the shell */
	struct nic_sensors *nic_sensors;
	size_t n_nic_sensors;
	/* with lemon_score filled by the shell (lemon.h) */
	struct node_failure *failures;
	size_t n_failures;
};
struct count {
	char *name;
	int64_t value;
};
struct cluster_view {
	struct {
		int64_t up, suspect, down, draining, drained;
	} nodes;
	struct {
		int64_t total, free;
	} gpus;
	int64_t jobs[_JOB_STATE_N];
	int64_t epoch;
	char *version;
	bool loopback;
};
struct why_reason {
	char *code, *text;
	char **evidence;
	size_t n_evidence;
};
struct why_view {
	char *verdict;
	int64_t since;
	struct why_reason *reasons;
	size_t n_reasons;
	char *next;
};
struct report_seconds {
	double total, productive, queue, launch, init, load, recompute, save, hang, detect, drain,
		idle;
};
struct report_view {
	double wall_s;
	struct report_seconds gpu_seconds;
	double ettr, goodput, mfu;
	int64_t restarts;
	struct incident *incidents;
	size_t n_incidents;
	struct prepare_view *prepare;
};
extern const struct mo_desc job_view_desc, node_view_desc, cluster_view_desc, why_reason_desc,
	why_view_desc, report_view_desc;

struct core;
/* ret must be initialised by mo_desc_init and is freed with mo_desc_done. now: core time. */
void job_view(const struct state *s, const struct job *j, int64_t now, struct job_view *ret);
void cluster_view(const struct state *s, const char *version, struct cluster_view *ret);
void job_report(const struct state *s, const struct job *j, int64_t now, struct report_view *ret);
struct prepare_view *prepare_view_of(const struct job *j); /* NULL: there is none */
void why_prepare(const struct job *j, int64_t now, struct why_view *w);
