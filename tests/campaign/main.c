/* See campaign.h: options, the run, what it prints and when it fails. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/job.h"
#include "daemon/core/update/check.h"
#include "daemon/core/view/report.h"
#include "lib/base/parse.h"
#include "tests/campaign/campaign.h"

#define MARGIN 0.001 /* of the share that the parameters imply: what the controller may take */

struct world w = { .lead = 0, .pending = -1, .slow = -1, .silent = -1, .hung = -1 };

double chance(void)
{
	uint64_t z = w.rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

void broken(const char *format, ...)
{
	va_list args;
	int at;

	if (w.broken[0])
		return;
	at = snprintf(w.broken, sizeof(w.broken), "%.0f s: ", (double)(w.now - w.began) / 1e6);
	va_start(args, format);
	vsnprintf(w.broken + at, sizeof(w.broken) - (size_t)at, format, args);
	va_end(args);
}

void times_add(struct times *t, int64_t us)
{
	t->s = mo_realloc_array(t->s, t->n + 1, sizeof(*t->s));
	t->s[t->n++] = (double)us / 1e6;
}

const struct job *the_job(void)
{
	return job_find(core_state(w.core), 1);
}

static void submit(void)
{
	struct submit spec;

	mo_desc_init(&submit_desc, &spec);
	spec.user = mo_strdup("ann");
	spec.recipe.name = mo_strdup("campaign");
	spec.recipe.gpus = w.o.nodes * LOCAL;
	spec.recipe.steps = 100000000;
	spec.recipe.hang = mo_strdup("auto");
	spec.recipe.on_node_loss = mo_strdup("spare");
	spec.recipe.lease_us = (int64_t)(w.o.lease_s * 1e6);
	spec.recipe.stop_signal = 15;
	spec.recipe.stop_grace_us = 60 * S;
	spec.recipe.max_cycles = 3;
	spec.recipe.grace_us = 0;
	spec.recipe.backoff_us = 300 * S;
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = -1;
	spec.recipe.checkpoint.keep = 2;
	spec.engine.kind = mo_strdup("torch");
	mo_strs_add(&spec.argv, &spec.n_argv, "/bin/train");
	decide(&(struct core_input){ .type = IN_SUBMIT, .submit = &spec });
	mo_desc_done(&submit_desc, &spec);
}

static void begin(void)
{
	struct core_config config = core_config_default;

	/* nobody is silent but while a node is (train.c) */
	config.suspect_us = config.down_us = NEVER;
	config.powers_off = true;
	w.rng = (uint64_t)w.o.seed;
	w.now = 1000 * S;
	w.look_at = w.beat_at = w.power_at = w.end_at = w.return_at = w.whole_at = INT64_MAX;
	w.n_all = (int)(w.o.nodes + MO_MAX(4, w.o.nodes / 32)); /* spares */
	w.nodes = mo_alloc((size_t)w.n_all * sizeof(*w.nodes));
	w.woken = mo_alloc_array((size_t)w.n_all, sizeof(*w.woken));
	w.core = core_new(&config);
	decide(&(struct core_input){ .type = IN_START });
	for (int i = 0; i < w.n_all; i++) {
		snprintf(w.nodes[i].name, sizeof(w.nodes[i].name), "n%05d", i);
		node_hello(i);
	}
	w.fault_at = w.now + 3600 * S;
	submit();
	w.began = w.now;
	w.until = w.began + (int64_t)(w.o.days * (double)DAY);
}

static void turn(int *list)
{
	int n = w.n_woken;

	if (n == 0) {
		w.now = MO_MAX(w.now, train_next());
	} else {
		memcpy(list, w.woken, sizeof(*list) * (size_t)n);
		w.n_woken = 0;
		w.now += S / 20;
		for (int i = 0; i < n; i++)
			node_beat(list[i]);
	}
	train_act();
}

/* To the end of the time, and of the restart that is under way then. */
static void run(void)
{
	int64_t attempt = 1;
	int *list;

	begin();
	list = mo_alloc_array((size_t)w.n_all, sizeof(*list));
	while (!w.broken[0] && (w.now < w.until || w.stage != STAGE_STEP || w.pending >= 0)) {
		turn(list);
		if (w.now > w.until + DAY || job_state_final(the_job()->state))
			broken("the job is %s and does not train again: attempt %lld, %s",
			       job_state_names[the_job()->state], (long long)w.attempt,
			       the_job()->reason ? the_job()->reason : "");
		if (w.attempt != attempt) {
			_cleanup_(mo_freep) char *wrong = state_check(w.core);

			if (wrong)
				broken("%s", wrong);
			attempt = w.attempt;
		}
	}
	free(list);
}

/* ---- what came of it ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_times(const char *what, struct times *t)
{
	if (!t->n)
		return;
	qsort(t->s, t->n, sizeof(*t->s), by_size);
	printf("  %-22s %6zu %9.2f %9.2f %9.2f\n", what, t->n, t->s[t->n / 2],
	       t->s[t->n * 95 / 100], t->s[t->n - 1]);
}

static void ledger_closes(const struct job *j)
{
	int64_t sum = 0, is = w.o.nodes * LOCAL * (j->ledger_at - w.began);
	_cleanup_(mo_freep) char *wrong = state_check(w.core);

	for (int i = 0; i < _GPU_CATEGORY_N; i++)
		sum += j->ledger[i];
	if (sum != is)
		broken("the ledger has %lld GPU-microseconds, and there were %lld", (long long)sum,
		       (long long)is);
	if (wrong)
		broken("%s", wrong);
}

static void print(const struct job *j, const struct report_view *v, double expected)
{
	static const char *const names[_GPU_CATEGORY_N] = {
		"productive", "queue", "launch", "init",  "load", "recompute",
		"save",       "hang",  "detect", "drain", "idle", "image",
	};
	const struct options *o = &w.o;
	double all = (double)(j->ledger_at - w.began) * (double)o->nodes * LOCAL;
	int64_t n = 0;

	printf("seed %lld: %lld GPUs, %.4g days, %.4g failures per 1,000 node-days; a step %.4g s, "
	       "every %lld saved: stall %.4g s, whole %.4g s later; lease %.4g s, power-off %.4g "
	       "s, network %s, GPUs %s\n",
	       (long long)o->seed, (long long)o->nodes * LOCAL, o->days, o->failures, o->step_s,
	       (long long)o->every, o->stall_s, o->write_s, o->lease_s, o->power_s,
	       o->net ? "read" : "not read", o->gpus ? "read" : "not read");
	for (int i = 0; i < _FAULT_N; i++)
		n += w.faults[i];
	printf("%lld iterations, %lld saves, %lld failures and drains, %lld restarts, %lld "
	       "suspicions, %lld false verdicts\n",
	       (long long)j->progress.watermark, (long long)w.n_saves, (long long)n,
	       (long long)w.attempt - 1, (long long)w.suspected, (long long)w.wrong);
	printf("  %-22s %6s %9s %9s %9s\n", "seconds to the verdict", "n", "p50", "p95", "max");
	for (int i = 0; i < _FAULT_N; i++)
		print_times(fault_names[i], &w.detected[i]);
	print_times("training again after", &w.restarted);
	printf("  %lld stragglers, %lld of them drained; hangs in the first iterations: %lld "
	       "stopped, %lld spin\n",
	       (long long)w.n_slow, (long long)w.faults[FAULT_SLOW],
	       (long long)w.early[FAULT_STOPPED], (long long)w.early[FAULT_SPINS]);
	for (int i = 0; i < _GPU_CATEGORY_N; i++)
		if (j->ledger[i])
			printf("  %-22s %8.4f %%\n", names[i], 100 * (double)j->ledger[i] / all);
	printf("ETTR %.3f %%; the parameters imply %.3f %%; with each iteration saved at no cost "
	       "%.3f %%; without what stragglers took of the productive time %.3f %%\n",
	       100 * v->ettr, 100 * expected, 100 * v->ettr_saving_each,
	       100 * (v->ettr -
		      (double)w.slow_us * (1 - 1 / SLOWER) / (double)(j->ledger_at - w.began)));
}

static bool judged(void)
{
	const struct job *j = the_job();
	struct report_view v;
	double expected = expected_ettr(&w);
	int64_t n = 0;

	mo_desc_init(&report_view_desc, &v);
	job_report(core_state(w.core), j, j->ledger_at, &v);
	for (int i = 0; i < _FAULT_N; i++)
		n += w.faults[i];
	if (w.attempt - 1 != n)
		broken("%lld failures and drains, and %lld restarts", (long long)n,
		       (long long)w.attempt - 1);
	ledger_closes(j);
	if (v.ettr < expected - MARGIN)
		broken("ETTR %.3f %% is below what the parameters imply, %.3f %%", 100 * v.ettr,
		       100 * expected);
	print(j, &v, expected);
	mo_desc_done(&report_view_desc, &v);
	if (w.broken[0])
		printf("BROKEN %s\n", w.broken);
	return !w.broken[0];
}

static bool option(const char *name, const char *value)
{
	struct options *o = &w.o;
	const struct {
		const char *name;
		int64_t *whole;
		double *real;
	} options[] = {
		{ "--seed", &o->seed, NULL },         { "--nodes", &o->nodes, NULL },
		{ "--every", &o->every, NULL },       { "--network", &o->net, NULL },
		{ "--days", NULL, &o->days },         { "--failures", NULL, &o->failures },
		{ "--step", NULL, &o->step_s },       { "--stall", NULL, &o->stall_s },
		{ "--write", NULL, &o->write_s },     { "--lease", NULL, &o->lease_s },
		{ "--power-off", NULL, &o->power_s }, { "--gpus", &o->gpus, NULL },
	};

	for (size_t i = 0; value && i < sizeof(options) / sizeof(*options); i++)
		if (mo_streq(name, options[i].name))
			return (options[i].whole ? mo_parse_i64(value, 0, 1000000, options[i].whole)
						 : mo_parse_double(value, options[i].real)) == 0;
	return false;
}

int main(int argc, char **argv)
{
	w.o = (struct options){ .seed = 1,
				.days = 30,
				.nodes = 2048,
				.failures = 6.5,
				.step_s = 10,
				.every = 1,
				.lease_s = 3,
				.power_s = 30,
				.net = 1,
				.gpus = 1 };
	for (int i = 1; i < argc; i += 2)
		if (!option(argv[i], argv[i + 1])) {
			fprintf(stderr,
				"usage: campaign [--seed N] [--days D] [--nodes N] "
				"[--failures PER_1000_NODE_DAYS] [--step S] [--every STEPS] "
				"[--stall S] [--write S] [--lease S] [--power-off S] "
				"[--network 0|1] [--gpus 0|1]\n");
			return 2;
		}
	run();
	return !judged();
}
