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
#include "daemon/core/view/prepare.h"
#include "daemon/core/view/slow.h"
#include "daemon/core/state/interval.h"
#include "daemon/core/state/state.h"
#include "daemon/core/state/waiting.h"
#include "daemon/core/view/node_state.h"

struct newest_checkpoint {
	int64_t iteration;
	char *path;
	bool verified;
};
struct spare_view {
	char *node;
	bool checked;
};
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
	struct kv *labels;
	size_t n_labels;
	int64_t priority;
	int phase;
	int64_t resume;
	/* NULL, unknown: not of this job */
	int64_t samples_left_out;
	struct interval *checkpoint_every;
	struct actual *plan; /* of one with a promise */
	struct prepare_view *prepare;
	char *checkpoint_late;
	struct pace_view *slower;
	struct straggler_view *straggler;
	int64_t resumes_at;
	struct waiting *waiting;
	char *image;
	struct data_order *data_order;
	struct fabric_check *fabric;
	struct skip *skips;
	size_t n_skips;
	int64_t spares_wanted;
	struct spare_view *spares;
	size_t n_spares;
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
extern const struct mo_desc job_view_desc, cluster_view_desc;

struct core;
/* ret must be initialised by mo_desc_init and is freed with mo_desc_done. now: core time. */
void job_view(const struct state *s, const struct job *j, int64_t now, struct job_view *ret);
/* The newest that was reported, before that where the attempt began; MO_NONE: neither. */
int64_t job_shown_iteration(const struct job *j);
/* Seconds to its last iteration at its newest step times; MO_NONE_F: not known. */
double job_eta_s(const struct job *j);
void cluster_view(const struct state *s, const char *version, struct cluster_view *ret);
