/* checkpoint.every: auto: measured cost and failures become the next attempt's interval; the last
 * checkpoint before a loss spike is kept. */
#include "daemon/core/state/shared.h"
#include "tests/unit/dcore/world.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include "daemon/core/state/interval.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/plan/reliability.h"

struct one {
	struct world w;
	int64_t id;
};

static void submit(struct one *o, bool automatic, const char *flag, int64_t keep)
{
	static const char *const words[] = { "train", "--save-interval",
					     "500",   "checkpoint.interval=500",
					     "500",   "--save-interval=500" };
	struct submit spec;
	struct kv *f;

	world_init(&o->w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = -1;
	spec.recipe.checkpoint.every = 500;
	spec.recipe.checkpoint.automatic = automatic;
	spec.recipe.checkpoint.keep = keep;
	f = MO_ADD(&spec.engine, flags, &kv_desc);
	f->key = mo_strdup("checkpoint.every");
	f->value = mo_strdup(flag);
	for (size_t i = 0; i < spec.n_argv; i++)
		free(spec.argv[i]);
	free(spec.argv);
	spec.argv = NULL;
	spec.n_argv = 0;
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		mo_strs_add(&spec.argv, &spec.n_argv, words[i]);
	o->id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
}

static const struct job *job(const struct one *o)
{
	return world_job(&o->w, o->id);
}

static void iterate(struct one *o, int64_t iteration, double loss)
{
	struct note *n = world_note(&o->w, 0, o->id, NOTE_SAMPLE);

	n->sample = mo_desc_new(&sample_desc);
	n->sample->iteration = iteration;
	n->sample->loss = loss;
	n->sample->step_ms = 1000;
	world_run(&o->w, S);
}

/* Ten seconds in which nothing is trained. */
static void save(struct one *o, int64_t iteration)
{
	struct note *n = world_note(&o->w, 0, o->id, NOTE_SAVING);

	n->iteration = iteration;
	world_run(&o->w, 10 * S);
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(&o->w, iteration, true);
	world_run(&o->w, S);
}

static void begin(struct one *o, bool automatic, const char *flag, int64_t keep)
{
	submit(o, automatic, flag, keep);
	world_run(&o->w, 2 * S);
	for (int64_t i = 1; i <= 4; i++)
		iterate(o, i, 2.0);
}

static void measured(struct one *o, struct interval *i)
{
	mo_desc_init(&interval_desc, i);
	assert_true(interval_of(core_state(o->w.core), job(o), i));
}

static void words(const struct one *o, const char *const *want)
{
	struct launch l;

	mo_desc_init(&launch_desc, &l);
	launch_make(core_state(o->w.core), job(o), 0, &l);
	for (size_t k = 0; k < 6; k++)
		assert_string_equal(l.argv[k], want[k]);
	mo_desc_done(&launch_desc, &l);
}

static void crash(struct one *o)
{
	world_exit(&o->w, 0, o->id, 0, 1, 0);
	world_exit(&o->w, 0, o->id, 1, 0, SIGKILL);
	world_run(&o->w, 40 * S);
	assert_int_equal(job(o)->attempt, 2);
}

static void nothing_measured_is_the_plan(void **state)
{
	struct one o;
	struct interval i;

	begin(&o, true, "--save-interval", 0);
	measured(&o, &i);
	assert_int_equal(i.iterations, 500);
	assert_int_equal(i.next, 500);
	/* no model: nobody planned */
	assert_string_equal(i.text,
			    "every 500 iterations, to begin with: no save was measured yet");
	mo_desc_done(&interval_desc, &i);
	world_done(&o.w);
	begin(&o, false, "--save-interval", 0);
	mo_desc_init(&interval_desc, &i);
	assert_false(interval_of(core_state(o.w.core), job(&o), &i));
	world_done(&o.w);
}

static void measured_at_the_next_start(void **state)
{
	const char *want[6] = { "train", "--save-interval",    "500", "checkpoint.interval=500",
				"500",   "--save-interval=500" };
	_cleanup_(mo_freep) char *number = NULL, *pair = NULL;
	struct one o;
	struct interval i;
	int64_t next;

	begin(&o, true, "--save-interval", 0);
	save(&o, 4);
	iterate(&o, 5, 2.0);
	save(&o, 5);
	iterate(&o, 6, 2.0);
	measured(&o, &i);
	assert_int_equal(i.saves, 2);
	assert_true(fabs(i.save_s - 10) < 1.5);
	assert_true(fabs(i.step_s - 1) < 0.01);
	assert_true(fabs(i.seconds - plan_daly_s(i.save_s, i.mttf_s)) < 1e-6);
	/* nothing failed yet: what is known of others */
	assert_true(fabs(i.mttf_s - 86400 / (6.5e-3 / 8) / 2) < 0.01 * i.mttf_s);
	assert_int_equal(i.iterations, 500);
	assert_int_equal(i.next, llround(i.seconds / i.step_s));
	assert_non_null(strstr(i.text, "the new one from the next start on"));
	mo_desc_done(&interval_desc, &i);
	words(&o, want); /* it cannot be changed while it runs */
	crash(&o);
	measured(&o, &i);
	next = job(&o)->saves.every;
	assert_int_equal(i.failures, 1);
	assert_true(next > 0 && next != 500);
	assert_true(fabs((double)next - i.seconds / i.step_s) < 0.05 * (double)next);
	mo_desc_done(&interval_desc, &i);
	want[2] = number = mo_printf("%lld", (long long)next);
	want[5] = pair = mo_printf("--save-interval=%lld", (long long)next);
	words(&o, want);
	world_done(&o.w);
}

static void a_template_word_is_replaced(void **state)
{
	const char *want[6] = { "train", "--save-interval",    "500", NULL,
				"500",   "--save-interval=500" };
	struct one o;

	begin(&o, true, "checkpoint.interval={checkpoint.every}", 0);
	save(&o, 4);
	iterate(&o, 5, 2.0);
	crash(&o);
	_cleanup_(mo_freep) char *word =
		mo_printf("checkpoint.interval=%lld", (long long)job(&o)->saves.every);
	want[3] = word;
	words(&o, want);
	world_done(&o.w);
}

/* A script gets it as {checkpoint.every} in its own words: the controller follows there too, and
 * only there. */
static void the_recipes_own_words_follow(void **state)
{
	static const char *const own[] = { "train", "--save", "500", "--lr", "500", "at:500" };
	struct one o;
	struct launch l;

	begin(&o, true, "--save-interval", 0);
	save(&o, 4);
	iterate(&o, 5, 2.0);
	crash(&o);
	struct job *j = (struct job *)(uintptr_t)job(&o); /* as if it had been submitted so */
	struct recipe_engine *e = &j->spec.recipe.engine;
	_cleanup_(mo_freep) char *number = mo_printf("%lld", (long long)j->saves.every),
				 *word = mo_printf("at:%s", number);
	const char *want[] = { "train", "--save", number, "--lr", "500", word };

	submit_unique(&j->spec);
	for (size_t i = 0; i < 6; i++)
		mo_str_set(&j->spec.argv[i], own[i]);
	for (int list = 0; list < 2; list++) {
		mo_vec_clear(&kv_desc, (void **)&e->args, &e->n_args);
		e->args_list = list;
		for (size_t i = 1; i < 6; i += list ? 1 : 2) {
			struct kv *arg = MO_ADD(e, args, &kv_desc);

			arg->key = mo_strdup(list && (i == 2 || i == 5)
						     ? i == 2 ? "{checkpoint.every}"
							      : "at:{checkpoint.every}"
						     : own[i]);
			arg->value = list || i == 5 ? NULL
						    : mo_strdup(i == 1 ? "{checkpoint.every}"
								       : own[i + 1]);
		}
		mo_desc_init(&launch_desc, &l);
		launch_make(core_state(o.w.core), j, 0, &l);
		for (size_t k = 0; k < 6; k++)
			assert_string_equal(l.argv[k], k == 5 && !list ? own[k] : want[k]);
		mo_desc_done(&launch_desc, &l);
	}
	world_done(&o.w);
}

static void the_last_good_one_is_kept(void **state)
{
	struct one o;

	begin(&o, false, "--save-interval", 2);
	o.w.verify = true; /* what is being verified is kept too */
	save(&o, 4);
	for (int64_t i = 5; i < 20; i++)
		iterate(&o, i, i == 18 ? NAN : 2.0);
	assert_int_equal(job(&o)->progress.spike, 18);
	for (int64_t i = 20; i < 24; i++) {
		iterate(&o, i, i == 22 ? 2.5 : 2.0);
		save(&o, i);
	}
	assert_int_equal(job(&o)->progress.spike, 18);
	assert_int_equal(checkpoint_find(job(&o), 4)->state, CKPT_VERIFIED);
	assert_int_equal(checkpoint_find(job(&o), 20)->state, CKPT_DELETED);
	assert_int_equal(checkpoint_find(job(&o), 23)->state, CKPT_VERIFIED);
	world_done(&o.w);
}

static void a_row_of_bad_losses_is_one_spike(void **state)
{
	struct one o;

	begin(&o, false, "--save-interval", 0);
	for (int64_t i = 5; i < 70; i++)
		iterate(&o, i, i < 20 ? 2.0 : i < 24 ? NAN : i == 65 ? 40.0 : 2.0);
	assert_int_equal(job(&o)->progress.spike, 65);
	world_done(&o.w);
	begin(&o, false, "--save-interval", 0);
	for (int64_t i = 5; i < 24; i++)
		iterate(&o, i, i < 20 ? 2.0 : INFINITY);
	assert_int_equal(job(&o)->progress.spike, 20);
	world_done(&o.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_measured_is_the_plan),
		cmocka_unit_test(measured_at_the_next_start),
		cmocka_unit_test(a_template_word_is_replaced),
		cmocka_unit_test(the_recipes_own_words_follow),
		cmocka_unit_test(the_last_good_one_is_kept),
		cmocka_unit_test(a_row_of_bad_losses_is_one_spike),
	};

	return cmocka_run_group_tests_name("dcore/interval", tests, NULL, NULL);
}
