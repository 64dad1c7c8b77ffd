/* What one input costs the controller's core, and one look at the cluster, with so many nodes of 8
 * GPUs known: core NODES prints one JSON line for each. CPU time of this thread, without the shell,
 * its store and its server (tests/bench/swarm has them). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/core.h"
#include "daemon/core/view/view.h"
#include "lib/base/parse.h"
#include "tests/core_inside.h"

#define N_SAMPLES 101
#define SECOND 1000000LL

struct fleet {
	struct core *core;
	size_t n;
	int64_t now, beat;
	bool crowd; /* the turn goes on */
};

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void decide(struct fleet *f, struct core_input *in)
{
	struct core_out out = { 0 };

	in->request = 1;
	core_decide(f->core, in, f->now, &out);
	if (!f->crowd)
		core_settle(f->core, f->now, &out);
	core_out_done(&out);
}

static void hello(struct fleet *f, size_t node, int instance)
{
	struct core_input in;

	core_input_init(&in, IN_HELLO);
	in.hello = mo_desc_new(&in_hello_desc);
	struct agent_hello *h = in.hello->message = mo_desc_new(&agent_hello_desc);

	h->node = mo_printf("n%05zu", node);
	h->boot_id = mo_printf("boot-%zu", node);
	h->instance = mo_printf("i-%zu-%d", node, instance);
	h->version = mo_strdup("bench");
	h->address = mo_strdup("127.0.0.1");
	h->protocol = MO_PROTOCOL;
	for (int k = 0; k < 8; k++) {
		struct gpu_slot *g = MO_ADD(&h->info, gpus, &gpu_slot_desc);

		g->index = k;
		g->model = mo_strdup("MI355X");
	}
	decide(f, &in);
	mo_desc_done(&core_input_desc, &in);
}

static void beat_of(struct fleet *f, size_t node, int instance, bool leaving)
{
	struct core_input in;

	core_input_init(&in, IN_SYNC);
	in.sync = mo_desc_new(&in_sync_desc);
	struct agent_sync *s = in.sync->message = mo_desc_new(&agent_sync_desc);

	s->node = mo_printf("n%05zu", node);
	s->boot_id = mo_printf("boot-%zu", node);
	s->instance = mo_printf("i-%zu-%d", node, instance);
	s->epoch = core_state(f->core)->epoch;
	s->beat = ++f->beat;
	s->leaving = leaving;
	decide(f, &in);
	mo_desc_done(&core_input_desc, &in);
}

static void beat(struct fleet *f, size_t node, int instance)
{
	beat_of(f, node, instance, false);
}

static void submit(struct fleet *f, int64_t gpus)
{
	struct core_input in;

	core_input_init(&in, IN_SUBMIT);
	in.submit = mo_desc_new(&submit_desc);
	in.submit->user = mo_strdup("ann");
	in.submit->recipe.name = mo_strdup("job");
	in.submit->recipe.gpus = gpus;
	in.submit->recipe.priority = 50;
	in.submit->recipe.checkpoint.resume = -1;
	in.submit->engine.kind = mo_strdup("torch");
	mo_strs_add(&in.submit->argv, &in.submit->n_argv, "/bin/train");
	decide(f, &in);
	mo_desc_done(&core_input_desc, &in);
}

static void cancel_newest(struct fleet *f)
{
	struct core_input in;

	core_input_init(&in, IN_CANCEL);
	in.by.may_all = true;
	in.cancel = mo_desc_new(&in_cancel_desc);
	in.cancel->job = core_state(f->core)->next_job - 1;
	decide(f, &in);
	mo_desc_done(&core_input_desc, &in);
}

/* ---- what is measured; i: which of the samples ---- */

static void on_beat(struct fleet *f, size_t i)
{
	beat(f, i, 0);
}

static void on_again(struct fleet *f, size_t i)
{
	hello(f, i, 1 + (int)f->beat);
	beat(f, i, 1 + (int)f->beat);
}

/* One of each of 500 of them in one turn. */
static void on_beats(struct fleet *f, size_t i)
{
	struct core_out out = { 0 };

	f->crowd = true;
	for (size_t k = 0; k < 500; k++)
		beat(f, (i + k) % f->n, 0);
	f->crowd = false;
	core_settle(f->core, f->now, &out);
	core_out_done(&out);
}

/* 50 of them at once: hellos and beats of one turn. */
static void on_crowd(struct fleet *f, size_t i)
{
	struct core_out out = { 0 };

	f->crowd = true;
	for (size_t k = 0; k < 50; k++)
		on_again(f, (i + k) % f->n);
	f->crowd = false;
	core_settle(f->core, f->now, &out);
	core_out_done(&out);
}

/* Its machine goes down, or does not after all: what there is for jobs is another. */
static void on_leaving(struct fleet *f, size_t i)
{
	beat_of(f, f->n - 1, 0, i % 2 == 0);
}

static void on_small(struct fleet *f, size_t i)
{
	(void)i;
	submit(f, 1);
}

static void on_large(struct fleet *f, size_t i)
{
	(void)i;
	submit(f, (int64_t)f->n * 8);
}

static void on_cancel(struct fleet *f, size_t i)
{
	(void)i;
	cancel_newest(f);
}

static void on_view(struct fleet *f, size_t i)
{
	struct cluster_view v;

	(void)i;
	mo_desc_init(&cluster_view_desc, &v);
	cluster_view(core_state(f->core), "bench", &v);
	mo_desc_done(&cluster_view_desc, &v);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void measure(struct fleet *f, const char *what, void (*of)(struct fleet *f, size_t i))
{
	int64_t ns[N_SAMPLES], looked = f->core->looked;

	for (size_t i = 0; i < N_SAMPLES; i++) {
		int64_t began = cpu_ns();

		of(f, i % f->n);
		ns[i] = cpu_ns() - began;
		f->now += 1000;
	}
	qsort(ns, N_SAMPLES, sizeof(*ns), by_value);
	printf("{\"bench\": \"core\", \"metric\": \"%s\", \"nodes\": %zu, \"unit\": \"us\", "
	       "\"value\": %.1f, \"min\": %.1f, \"max\": %.1f, \"looked\": %" PRId64
	       ", \"n\": %d}\n",
	       what, f->n, (double)ns[N_SAMPLES / 2] / 1e3, (double)ns[0] / 1e3,
	       (double)ns[N_SAMPLES - 1] / 1e3, (f->core->looked - looked) / N_SAMPLES, N_SAMPLES);
	fflush(stdout);
}

static void begin(struct fleet *f)
{
	struct core_input in;

	f->core = core_new(&core_config_default);
	f->now = 1000 * SECOND;
	core_input_init(&in, IN_START);
	decide(f, &in);
	int64_t began = cpu_ns();
	for (size_t i = 0; i < f->n; i++)
		hello(f, i, 0);
	printf("{\"bench\": \"core\", \"metric\": \"join\", \"nodes\": %zu, \"unit\": \"us\", "
	       "\"value\": %.1f}\n",
	       f->n, (double)(cpu_ns() - began) / 1e3 / (double)f->n);
	for (size_t i = 0; i < f->n; i++)
		beat(f, i, 0);
}

int main(int argc, char **argv)
{
	struct fleet f = { 0 };
	int64_t n;

	if (argc != 2 || mo_parse_i64(argv[1], 1, 1000000, &n) < 0) {
		fprintf(stderr, "usage: core NODES\n");
		return 2;
	}
	f.n = (size_t)n;
	begin(&f);
	measure(&f, "beat", on_beat);
	measure(&f, "500 beats", on_beats);
	measure(&f, "again", on_again);
	measure(&f, "cluster view", on_view);
	measure(&f, "submit, placed", on_small);
	measure(&f, "again, 101 jobs run", on_again);
	measure(&f, "submit, the first waits", on_large);
	measure(&f, "cancel of the newest that waits", on_cancel);
	for (size_t i = 0; i < 200; i++)
		submit(&f, (int64_t)f.n * 8);
	measure(&f, "submit behind 200", on_large);
	measure(&f, "again, 301 jobs wait", on_again);
	measure(&f, "50 again, 301 jobs wait", on_crowd);
	measure(&f, "a node goes or stays, 301 jobs wait", on_leaving);
	measure(&f, "beat, 301 jobs wait", on_beat);
	measure(&f, "cluster view, 402 jobs", on_view);
	core_free(f.core);
	return 0;
}
