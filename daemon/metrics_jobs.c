/* See metrics_jobs.h. Every series has the label `job` alone; what it is called and whose it is
 * stands in moe_job_info, to be joined by it. No rank and no iteration is a label. */
#include "daemon/metrics_jobs.h"

#include <stdio.h>

#include "daemon/core/state/heard.h"
#include "daemon/core/state/pace.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/view/report.h"
#include "lib/wire/metric.h"

#define STEPS 1000 /* newest samples, of which the quantiles are */
#define LISTED 100 /* jobs: those that have GPUs before those that wait */

struct one {
	const struct state *state;
	const struct job *job;
	int64_t ledger[_GPU_CATEGORY_N];
	char id[24];
};

static double or_none(int64_t n)
{
	return n == MO_NONE ? MO_NONE_F : (double)n;
}

static double seconds(int64_t us)
{
	return us == MO_NONE || us <= 0 ? MO_NONE_F : (double)us / 1e6;
}

static double attempt_of(const struct one *o)
{
	return (double)o->job->attempt;
}
static double iteration_of(const struct one *o)
{
	return or_none(o->job->progress.iteration);
}
static double steps_of(const struct one *o)
{
	return o->job->spec.recipe.steps > 0 ? (double)o->job->spec.recipe.steps : MO_NONE_F;
}
static double gpus_of(const struct one *o)
{
	return (double)job_gpus(o->job);
}
static double restarts_of(const struct one *o)
{
	return (double)o->job->restarts;
}
static double loss_of(const struct one *o)
{
	return o->job->progress.shown.loss;
}
static double grad_norm_of(const struct one *o)
{
	const struct job_progress *p = &o->job->progress;

	return p->n_samples ? p->samples[p->n_samples - 1].grad_norm : MO_NONE_F;
}
static double tokens_of(const struct one *o)
{
	return o->job->progress.shown.tokens_per_s_per_gpu;
}
static double tflops_of(const struct one *o)
{
	double v = o->job->progress.shown.tflops_per_gpu;

	return v == MO_NONE_F ? v : v * 1e12;
}
static double mfu_of(const struct one *o)
{
	return o->job->progress.shown.mfu;
}
static double ettr_of(const struct one *o)
{
	return report_ettr(o->ledger);
}
static double progress_of(const struct one *o)
{
	return seconds(job_progress_at(o->state, o->job));
}
static double slower_of(const struct one *o)
{
	return o->job->progress.pace ? pace_lost_pct(o->job) / 100 : MO_NONE_F;
}
static double straggler_of(const struct one *o)
{
	return o->job->straggler.rank == MO_NONE ? MO_NONE_F : o->job->straggler.lost_pct / 100;
}
static double left_of(const struct one *o)
{
	double n = 0;

	for (size_t i = 0; i < o->job->straggler.n_found; i++)
		n += o->job->straggler.found[i].left;
	return n;
}
static double hang_of(const struct one *o)
{
	return o->job->hang.stage == HANG_NONE ? 0 : 1 + o->job->hang.stage;
}
static double free_of(const struct one *o)
{
	return or_none(o->job->progress.shown.checkpoint_free_bytes);
}
static const struct checkpoint *newest(const struct one *o)
{
	int64_t iteration = state_newest_checkpoint(o->job);

	for (size_t i = 0; i < o->job->n_checkpoints && iteration != MO_NONE; i++)
		if (o->job->checkpoints[i].iteration == iteration)
			return &o->job->checkpoints[i];
	return NULL;
}
static double checkpoint_of(const struct one *o)
{
	return newest(o) ? (double)newest(o)->iteration : MO_NONE_F;
}
static double saved_of(const struct one *o)
{
	return newest(o) ? seconds(newest(o)->saved_at) : MO_NONE_F;
}
static double state_of(const struct one *o)
{
	return (double)o->job->state;
}

static const struct {
	struct metric metric;
	double (*get)(const struct one *o);
} figures[] = {
	{ { "moe_job_state", METRIC_GAUGE,
	    "0 queued, 1 starting, 2 running, 3 recovering, 4 stopping, 5 paused." },
	  state_of },
	{ { "moe_job_attempt", METRIC_GAUGE, "Number of its newest attempt." }, attempt_of },
	{ { "moe_job_gpus", METRIC_GAUGE, "GPUs that it has or waits for." }, gpus_of },
	{ { "moe_job_iteration", METRIC_GAUGE, "Newest iteration." }, iteration_of },
	{ { "moe_job_steps", METRIC_GAUGE, "Iterations that it is to run." }, steps_of },
	{ { "moe_job_last_progress_timestamp_seconds", METRIC_GAUGE,
	    "When its newest iteration was heard of." },
	  progress_of },
	{ { "moe_job_loss", METRIC_GAUGE, "Newest loss; NaN where the engine says so." }, loss_of },
	{ { "moe_job_grad_norm", METRIC_GAUGE, "Gradient norm of the newest iteration." },
	  grad_norm_of },
	{ { "moe_job_restarts_total", METRIC_COUNTER, "Attempts after a failure." }, restarts_of },
	{ { "moe_job_tokens_per_second_per_gpu", METRIC_GAUGE, "Newest throughput." }, tokens_of },
	{ { "moe_job_flops_per_gpu", METRIC_GAUGE,
	    "Newest throughput, operations of the model per second and GPU." },
	  tflops_of },
	{ { "moe_job_mfu_ratio", METRIC_GAUGE,
	    "Share of the GPUs' peak that the model's operations use." },
	  mfu_of },
	{ { "moe_job_ettr_ratio", METRIC_GAUGE,
	    "Productive share of the time in which it had GPUs." },
	  ettr_of },
	{ { "moe_job_slower_ratio", METRIC_GAUGE,
	    "Share of its time that it loses against the best that it kept up." },
	  slower_of },
	{ { "moe_job_straggler_lost_ratio", METRIC_GAUGE,
	    "Share of its time that it loses by one rank; absent: none stands out." },
	  straggler_of },
	{ { "moe_job_straggler_moves", METRIC_GAUGE,
	    "How often it moved away from a node by the 32 newest stragglers." },
	  left_of },
	{ { "moe_job_hang", METRIC_GAUGE, "0 it moves, 1 a hang is suspected, 2 confirmed." },
	  hang_of },
	{ { "moe_job_checkpoint_iteration", METRIC_GAUGE,
	    "Iteration of the newest checkpoint that a resume can begin from." },
	  checkpoint_of },
	{ { "moe_job_checkpoint_timestamp_seconds", METRIC_GAUGE, "When that was saved." },
	  saved_of },
	{ { "moe_job_checkpoint_free_bytes", METRIC_GAUGE,
	    "Free where its checkpoints lie, when a node last looked." },
	  free_of },
};

static void info(struct mo_buf *b, const struct one *all, size_t n)
{
	static const struct metric metric = { "moe_job_info", METRIC_GAUGE,
					      "Its name, who submitted it, its engine." };

	metric_begin(b, &metric);
	for (size_t i = 0; i < n; i++) {
		const struct submit *s = &all[i].job->spec;

		metric_add(b, &metric, 1,
			   METRIC_LABELS("job", all[i].id, "name", s->recipe.name, "user", s->user,
					 "engine", s->engine.kind));
	}
}

static void ledgers(struct mo_buf *b, const struct one *all, size_t n)
{
	static const struct metric metric = {
		"moe_job_gpu_seconds_total", METRIC_COUNTER,
		"Where its GPU-seconds went; queue counts GPUs that it waits for."
	};

	metric_begin(b, &metric);
	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < _GPU_CATEGORY_N; c++)
			metric_add(b, &metric, (double)all[i].ledger[c] / 1e6,
				   METRIC_LABELS("job", all[i].id, "category",
						 ledger_category_names[c]));
}

static void checkpoints(struct mo_buf *b, const struct one *all, size_t n)
{
	static const struct metric metric = { "moe_job_checkpoints", METRIC_GAUGE,
					      "Its checkpoints by state." };

	metric_begin(b, &metric);
	for (size_t i = 0; i < n; i++) {
		const struct job *j = all[i].job;
		int64_t by_state[_CKPT_STATE_N] = { 0 };

		for (size_t k = 0; k < j->n_checkpoints; k++)
			by_state[j->checkpoints[k].tainted ? CKPT_TAINTED
							   : j->checkpoints[k].state]++;
		for (int k = 0; k < _CKPT_STATE_N; k++)
			metric_add(b, &metric, by_state[k] ? (double)by_state[k] : MO_NONE_F,
				   METRIC_LABELS("job", all[i].id, "state",
						 checkpoint_state_names[k]));
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void steps(struct mo_buf *b, const struct one *all, size_t n)
{
	static const struct metric metric = { "moe_job_step_seconds", METRIC_SUMMARY,
					      "Time of an iteration, of the newest thousand." };
	static const struct {
		const char *label;
		double share;
	} quantiles[] = { { "0.5", 0.5 }, { "0.95", 0.95 }, { "0.99", 0.99 } };
	_cleanup_(mo_freep) double *ms = mo_alloc_array(STEPS, sizeof(*ms));

	metric_begin(b, &metric);
	for (size_t i = 0; i < n; i++) {
		const struct job_progress *p = &all[i].job->progress;
		size_t known = 0;

		for (size_t k = p->n_samples; k > 0 && known < STEPS; k--)
			if (p->samples[k - 1].step_ms != MO_NONE_F)
				ms[known++] = p->samples[k - 1].step_ms;
		qsort(ms, known, sizeof(*ms), ascending);
		for (size_t q = 0; q < ELEMENTSOF(quantiles) && known; q++)
			metric_add(b, &metric,
				   ms[(size_t)(quantiles[q].share * (double)(known - 1))] / 1e3,
				   METRIC_LABELS("job", all[i].id, "quantile", quantiles[q].label));
	}
}

/* Those of the jobs that are not over and have GPUs, or have none. */
static void list(struct manager *m, bool placed, struct one **all, size_t *n, size_t *left_out)
{
	const struct state *s = manager_state(m);
	int64_t now = manager_now(m);

	for (size_t i = 0; i < s->n_jobs; i++) {
		struct one *o;

		if (job_state_final(s->jobs[i]->state) || (s->jobs[i]->run.n_places > 0) != placed)
			continue;
		if (*n == LISTED) {
			++*left_out;
			continue;
		}
		o = MO_GROW(*all, *n);
		*o = (struct one){ .state = s, .job = s->jobs[i] };
		snprintf(o->id, sizeof(o->id), "j-%lld", (long long)o->job->id);
		report_ledger(s, o->job, now, o->ledger);
	}
}

void metrics_jobs(struct manager *m, struct mo_buf *b)
{
	_cleanup_(mo_freep) struct one *all = NULL;
	size_t n = 0, left_out = 0;

	list(m, true, &all, &n, &left_out);
	list(m, false, &all, &n, &left_out);
	metric_one(b,
		   &(struct metric){ "moe_jobs_left_out", METRIC_GAUGE,
				     "Jobs that are not over and not listed, as there are too "
				     "many." },
		   (double)left_out);
	info(b, all, n);
	for (size_t f = 0; f < ELEMENTSOF(figures); f++) {
		metric_begin(b, &figures[f].metric);
		for (size_t i = 0; i < n; i++)
			metric_add(b, &figures[f].metric, figures[f].get(&all[i]),
				   METRIC_LABELS("job", all[i].id));
	}
	ledgers(b, all, n);
	checkpoints(b, all, n);
	steps(b, all, n);
}
