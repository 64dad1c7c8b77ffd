/* Samples, the GPU-second ledger, reports, limits of what grows, versions of records. */
#include "tests/unit/dcore/world.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/view/report.h"
#include "daemon/core/view/why_view.h"
#include "lib/model/limits.h"
#include "daemon/core/view/why.h"
#include "daemon/core/view/view_node.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

static int64_t running(struct world *w, int64_t gpus)
{
	int64_t id;

	world_init(w, 1, gpus);
	id = world_submit_gpus(w, gpus);
	world_beat(w, 0);
	assert_int_equal(world_job(w, id)->state, JOB_RUNNING);
	return id;
}

/* One iteration each second from `from` to `to`. */
static void iterate(struct world *w, int64_t id, int64_t from, int64_t to)
{
	for (int64_t i = from; i <= to; i++) {
		world_tick(w, S);
		world_iteration(w, 0, id, i);
		world_beat(w, 0);
	}
}

static void first_passes_are_productive_repeats_are_not(void **state)
{
	struct report_view rep;
	struct world w;
	int64_t id = running(&w, 2);
	const int64_t *l;
	double sum;

	iterate(&w, id, 1, 5);
	l = world_job(&w, id)->ledger;
	assert_int_equal(l[GPU_INIT], 2 * S); /* until the first iteration */
	assert_int_equal(l[GPU_PRODUCTIVE], 2 * 4 * S);
	world_tick(&w, S / 2);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_beat(&w, 0);
	l = world_job(&w, id)->ledger;
	assert_int_equal(l[GPU_DETECT], S); /* the unfinished iteration bought nothing */
	world_beat(&w, 0);
	iterate(&w, id, 1, 7);
	l = world_job(&w, id)->ledger;
	assert_int_equal(l[GPU_RECOMPUTE], 2 * 4 * S);
	assert_int_equal(l[GPU_PRODUCTIVE], 2 * 6 * S);
	mo_desc_init(&report_view_desc, &rep);
	job_report(core_state(w.core), world_job(&w, id), w.now + 3 * S, &rep);
	sum = rep.gpu_seconds.productive + rep.gpu_seconds.launch + rep.gpu_seconds.init +
	      rep.gpu_seconds.load + rep.gpu_seconds.recompute + rep.gpu_seconds.save +
	      rep.gpu_seconds.hang + rep.gpu_seconds.detect + rep.gpu_seconds.drain +
	      rep.gpu_seconds.idle;
	assert_true(fabs(sum - rep.gpu_seconds.total) < 1e-6);
	assert_true(fabs(rep.gpu_seconds.total + rep.gpu_seconds.queue - 2 * rep.wall_s) < 1e-6);
	assert_true(rep.ettr > 0 && rep.ettr < 1);
	assert_int_equal(rep.restarts, 1);
	assert_int_equal(rep.n_incidents, 1);
	mo_desc_done(&report_view_desc, &rep);
	world_done(&w);
}

static void a_sparse_sample_is_shared_out(void **state)
{
	struct world w;
	int64_t id = running(&w, 1);

	iterate(&w, id, 1, 10);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, S);
	world_iteration(&w, 0, id, 1);
	world_beat(&w, 0);
	world_tick(&w, 19 * S / 10);
	world_iteration(&w, 0, id, 20); /* nine repeated, ten new */
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_RECOMPUTE], 9 * S / 10);
	assert_int_equal(world_job(&w, id)->ledger[GPU_PRODUCTIVE], 9 * S + S);
	world_done(&w);
}

static void phases_and_states_have_their_category(void **state)
{
	struct world w;
	int64_t id = running(&w, 1);
	const int64_t *l;

	world_tick(&w, S);
	world_note(&w, 0, id, NOTE_PHASE)->phase = PHASE_LOAD;
	world_beat(&w, 0);
	world_tick(&w, 2 * S);
	world_iteration(&w, 0, id, 1);
	world_beat(&w, 0);
	world_tick(&w, S);
	world_note(&w, 0, id, NOTE_SAVING)->iteration = 1;
	world_beat(&w, 0);
	world_tick(&w, S + S / 2);
	world_note(&w, 0, id, NOTE_CHECKPOINT)->iteration = 1;
	world_beat(&w, 0);
	w.no_kill = true;
	world_verb(&w, IN_PAUSE, id);
	world_tick(&w, S);
	w.no_kill = false;
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->state, JOB_PAUSED);
	l = world_job(&w, id)->ledger;
	assert_int_equal(l[GPU_INIT], S);
	assert_int_equal(l[GPU_LOAD], 2 * S);
	assert_int_equal(l[GPU_SAVE], S + S / 2);
	assert_int_equal(l[GPU_DRAIN], S);
	world_tick(&w, 5 * S);
	world_verb(&w, IN_CANCEL, id);
	assert_int_equal(world_job(&w, id)->ledger[GPU_IDLE], 5 * S);
	world_done(&w);
}

static struct note *last_note(struct world *w, int64_t id)
{
	struct toy_step *s = world_toy_step(w, 0, id);

	return &s->notes[s->n_notes - 1];
}

/* When the last note was, by both clocks of its node. */
static void written(struct world *w, int64_t id, int64_t us)
{
	last_note(w, id)->time = 1700000000 * S + us;
	last_note(w, id)->mono_ns = (5000 * S + us) * 1000;
}

/* A beat brings several notes at once: what each phase took follows from the times at which they
 * were written. */
static void notes_of_one_beat_keep_their_durations(void **state)
{
	const int64_t ms = 1000;
	struct world w;
	int64_t id = running(&w, 2);
	const int64_t *l;

	world_tick(&w, S);
	world_iteration(&w, 0, id, 1);
	written(&w, id, 0);
	last_note(&w, id)->sample->step_ms = 100;
	world_note(&w, 0, id, NOTE_SAVING)->iteration = 1;
	written(&w, id, 0);
	world_note(&w, 0, id, NOTE_CHECKPOINT)->iteration = 1;
	written(&w, id, 300 * ms);
	world_iteration(&w, 0, id, 2);
	written(&w, id, 400 * ms);
	world_beat(&w, 0);
	l = world_job(&w, id)->ledger;
	assert_int_equal(l[GPU_INIT], 2 * 500 * ms); /* not the whole second until the beat */
	assert_int_equal(l[GPU_SAVE], 2 * 300 * ms);
	assert_int_equal(l[GPU_PRODUCTIVE], 2 * 200 * ms);
	world_done(&w);
}

/* A clock that is set back, or a step time longer than the attempt: nothing is charged twice, the
 * ledger closes (the world checks). */
static void odd_times_close_the_ledger(void **state)
{
	struct world w;
	int64_t id = running(&w, 2);

	world_tick(&w, S);
	for (int64_t i = 1; i <= 6; i++) {
		world_iteration(&w, 0, id, i);
		written(&w, id, (i % 2 ? -3600 : 3600) * S);
		last_note(&w, id)->sample->step_ms = 1e9;
		world_note(&w, 0, id, NOTE_PHASE)->phase = i % 3 ? PHASE_EVAL : PHASE_SAVE;
		written(&w, id, -i * S);
	}
	world_beat(&w, 0);
	iterate(&w, id, 7, 9);
	assert_int_equal(world_job(&w, id)->progress.iteration, 9);
	world_done(&w);
}

static void samples_are_merged_and_derived(void **state)
{
	struct submit spec;
	struct world w;
	struct note *n;
	const struct sample *s;
	int64_t id;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.seq = 100;
	spec.recipe.global_batch = 8;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_beat(&w, 0);
	world_iteration(&w, 0, id, 1);
	world_beat(&w, 0);
	world_tick(&w, 2 * S);
	world_iteration(&w, 0, id, 2);
	n = world_note(&w, 0, id, NOTE_SAMPLE);
	n->rank = 1;
	n->sample = mo_desc_new(&sample_desc);
	n->sample->iteration = 2;
	n->sample->grad_norm = 3.5;
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->progress.n_samples, 2);
	assert_int_equal(world_job(&w, id)->progress.left_out, MO_NONE);
	for (int64_t i = 10; i <= 20; i += 10) {
		world_iteration(&w, 0, id, i);
		last_note(&w, id)->left_out = i;
	}
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->progress.left_out, 30);
	s = &world_job(&w, id)->progress.samples[1];
	assert_true(s->loss == 1.0 / 3 && s->grad_norm == 3.5);
	assert_int_equal(s->tokens, 800);
	assert_true(s->step_ms == 2000.0);
	assert_true(s->tokens_per_s_per_gpu == 200.0);
	assert_true(world_job(&w, id)->progress.shown.tokens_per_s_per_gpu == 200.0);
	assert_int_equal(samples_step_us(world_job(&w, id)), 2 * S);
	world_done(&w);
}

static void mfu_is_of_the_peak_of_the_gpu(void **state)
{
	static const struct {
		double peak, tflops, reported, want;
	} cases[] = {
		{ 800, 200, MO_NONE_F, 0.25 },
		{ 800, 200, 0.5, 0.5 },
		{ 800, MO_NONE_F, MO_NONE_F, MO_NONE_F },
		{ MO_NONE_F, 200, MO_NONE_F, MO_NONE_F },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct job j;
		struct sample s;

		mo_desc_init(&job_desc, &j);
		j.spec.recipe.gpus = 1;
		j.spec.peak_tflops = cases[i].peak;
		mo_desc_init(&sample_desc, &s);
		s.iteration = 1;
		s.tflops_per_gpu = cases[i].tflops;
		s.mfu = cases[i].reported;
		samples_add(&j, &s, 1, S);
		assert_true(j.progress.samples[0].mfu == cases[i].want &&
			    j.progress.shown.mfu == cases[i].want);
		mo_desc_done(&job_desc, &j);
	}
}

static void samples_are_bounded(void **state)
{
	struct job j;

	mo_desc_init(&job_desc, &j);
	j.spec.recipe.gpus = 1;
	for (int64_t i = 1; i <= 3 * MO_SAMPLES_MAX; i++) {
		struct sample s;

		mo_desc_init(&sample_desc, &s);
		s.iteration = i;
		samples_add(&j, &s, 1, i * S);
		assert_true(j.progress.n_samples <= MO_SAMPLES_MAX);
	}
	for (size_t i = 1; i < j.progress.n_samples; i++)
		assert_true(j.progress.samples[i - 1].iteration < j.progress.samples[i].iteration);
	assert_int_equal(j.progress.samples[j.progress.n_samples - 1].iteration,
			 3 * MO_SAMPLES_MAX);
	/* the newest are all there */
	assert_true(j.progress.samples[j.progress.n_samples - 5000].iteration ==
		    3 * MO_SAMPLES_MAX - 4999);
	mo_desc_done(&job_desc, &j);
}

static void events_and_incidents_are_bounded(void **state)
{
	struct core *core = core_new(&core_config_default);
	struct core_out out = { 0 };

	for (int i = 0; i < 2 * MO_EVENTS_MAX; i++) {
		core_turn(core,
			  &(struct core_input){
				  .type = IN_STORE,
				  .store = &(struct in_store){ .event = (char *)"store.slow",
							       .message = (char *)"x" } },
			  i, &out);
		assert_true(core_state(core)->n_events <= MO_EVENTS_MAX);
		core_out_done(&out);
	}
	assert_int_equal(core_state(core)->events[core_state(core)->n_events - 1].seq,
			 2 * MO_EVENTS_MAX);
	core_free(core);
}

static void records_of_another_version_are_refused(void **state)
{
	struct core *core = core_new(&core_config_default);
	struct record r;

	record_init(&r, REC_CONTROLLER);
	r.controller->epoch = 1;
	r.time = 1;
	assert_int_equal(core_update(core, &r), 0);
	r.version = RECORD_VERSION + 1;
	assert_int_equal(core_update(core, &r), -EINVAL);
	mo_desc_done(&record_desc, &r);
	/* of something that is not there: refused or without effect, never a crash */
	for (int type = 0; type < _REC_N; type++) {
		record_init(&r, type);
		r.job = 5;
		r.node = mo_strdup("nowhere");
		if (type != REC_CONTROLLER && type != REC_TOKEN_REVOKED)
			assert_int_equal(core_update(core, &r), -EINVAL);
		mo_desc_done(&record_desc, &r);
	}
	core_free(core);
}

static void snapshot_round_trip(void **state)
{
	struct mo_buf b = { 0 };
	struct mo_error err = { 0 };
	struct state back;
	struct world w;
	struct core *other = core_new(&core_config_default);
	int64_t id = running(&w, 2);
	char *diff;

	iterate(&w, id, 1, 3);
	world_submit_gpus(&w, 2);
	wire_encode(&state_desc, core_state(w.core), &b);
	mo_desc_init(&state_desc, &back);
	if (wire_decode(&state_desc, b.data, b.len, false, &back, &err) != 0)
		fail_msg("%s", err.text);
	core_load(other, &back);
	diff = mo_desc_diff(&state_desc, core_state(w.core), core_state(other));
	if (diff)
		fail_msg("%s", diff);
	mo_buf_done(&b);
	core_free(other);
	world_done(&w);
}

static void views(void **state)
{
	struct cluster_view c;
	struct node_view n;
	struct job_view v;
	struct world w;
	int64_t id = running(&w, 2);
	struct mo_buf b = { 0 };

	iterate(&w, id, 1, 3);
	world_submit_gpus(&w, 1);
	mo_desc_init(&job_view_desc, &v);
	job_view(core_state(w.core), world_job(&w, id), w.now, &v);
	assert_int_equal(v.iteration, 3);
	assert_string_equal(v.nodes[0], "n0");
	wire_encode(&job_view_desc, &v, &b);
	assert_non_null(strstr(b.data,
			       "\"id\":\"j-1\",\"name\":\"job\",\"state\":\"running\",\"attempt\":"
			       "1,\"restarts\":0,\"iteration\":3,\"steps\":null"));
	mo_desc_done(&job_view_desc, &v);
	mo_desc_init(&cluster_view_desc, &c);
	cluster_view(core_state(w.core), "0.1", &c);
	assert_int_equal(c.gpus.total, 2);
	assert_int_equal(c.gpus.free, 0);
	assert_int_equal(c.nodes.up, 1);
	assert_int_equal(c.jobs[JOB_RUNNING], 1);
	assert_int_equal(c.jobs[JOB_QUEUED], 1);
	mo_buf_reset(&b);
	wire_encode(&cluster_view_desc, &c, &b);
	assert_non_null(strstr(b.data, "\"jobs\":{\"queued\":1,\"starting\":0,\"running\":1"));
	mo_desc_done(&cluster_view_desc, &c);
	mo_desc_init(&node_view_desc, &n);
	node_view(core_state(w.core), world_node(&w, 0), w.now, true, &n);
	assert_int_equal(n.gpus, 2);
	assert_int_equal(n.gpus_free, 0);
	assert_string_equal(n.jobs[0], "j-1");
	assert_string_equal(n.gpu_model, "mi300x");
	assert_non_null(n.info);
	mo_desc_done(&node_view_desc, &n);
	mo_buf_done(&b);
	for (int64_t k = 1; k <= 2; k++) {
		struct why_view why;

		mo_desc_init(&why_view_desc, &why);
		job_why(core_state(w.core), world_job(&w, k), w.now, &why);
		assert_true(why.n_reasons > 0);
		assert_non_null(why.next);
		mo_desc_done(&why_view_desc, &why);
	}
	world_done(&w);
}

/* Its newest agent says that the node has no GPUs, and a job runs on two of them. */
static void slots_that_are_gone_are_not_counted_as_taken(void **state)
{
	struct node_view n;
	struct world w;

	running(&w, 2);
	w.toys[0].gpus = 0;
	snprintf(w.toys[0].instance, sizeof(w.toys[0].instance), "another");
	world_hello(&w, 0);
	world_run(&w, 2 * S);
	assert_int_equal(world_node(&w, 0)->info.n_gpus, 0);
	mo_desc_init(&node_view_desc, &n);
	node_view(core_state(w.core), world_node(&w, 0), w.now, true, &n);
	assert_int_equal(n.gpus_free, 0);
	mo_desc_done(&node_view_desc, &n);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_that_are_gone_are_not_counted_as_taken),
		cmocka_unit_test(first_passes_are_productive_repeats_are_not),
		cmocka_unit_test(a_sparse_sample_is_shared_out),
		cmocka_unit_test(phases_and_states_have_their_category),
		cmocka_unit_test(notes_of_one_beat_keep_their_durations),
		cmocka_unit_test(odd_times_close_the_ledger),
		cmocka_unit_test(samples_are_merged_and_derived),
		cmocka_unit_test(mfu_is_of_the_peak_of_the_gpu),
		cmocka_unit_test(samples_are_bounded),
		cmocka_unit_test(events_and_incidents_are_bounded),
		cmocka_unit_test(records_of_another_version_are_refused),
		cmocka_unit_test(snapshot_round_trip),
		cmocka_unit_test(views),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
