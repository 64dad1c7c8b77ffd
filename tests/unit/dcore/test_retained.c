/* How much of recipes and configurations is kept, whose goes first, and that jobs share what is the
 * same. The world's shadow replays every record and must stay equal. */
#include "tests/unit/dcore/world.h"

#include <string.h>
#include <time.h>

#include "lib/model/limits.h"

#define TEXT (1 << 20)
#define LONG (16 << 20)

static int64_t submit_of(struct world *w, const char *user, size_t bytes)
{
	struct submit s;

	world_recipe(&s, 64);
	mo_str_set(&s.user, user);
	s.recipe_text = mo_alloc(bytes + 1);
	memset(s.recipe_text, 'x', bytes);
	int64_t id = world_submit(w, &s);
	mo_desc_done(&submit_desc, &s);
	return id;
}

static bool has_text(const struct world *w, int64_t id)
{
	const struct job *j = world_job(w, id);

	assert_int_equal(j->spec.recipe_text == NULL, j->let_go != MO_NONE);
	return j->spec.recipe_text;
}

/* Who ended first gives its text up, whenever it was submitted; small ones stay, and a replay ends
 * at the same. */
static void test_finished(void **state)
{
	int64_t ids[MO_RETAINED_TEXTS_MAX / TEXT + 3], n = MO_RETAINED_TEXTS_MAX / TEXT - 1;
	struct world w;

	world_init(&w, 1, 8);
	int64_t old = submit_of(&w, "old", TEXT), small = submit_of(&w, "small", 3000);
	world_verb(&w, IN_CANCEL, small);
	for (int64_t i = 0; i < n; i++) {
		ids[i] = submit_of(&w, "ann", TEXT);
		world_verb(&w, IN_CANCEL, ids[i]);
		world_tick(&w, S);
		assert_true(has_text(&w, ids[i]));
	}
	assert_true(has_text(&w, ids[0]));
	world_verb(&w, IN_CANCEL, old); /* one too much */
	assert_true(has_text(&w, old));
	assert_false(has_text(&w, ids[0]));
	assert_in_range(world_job(&w, ids[0])->let_go, TEXT, TEXT + 4096);
	assert_true(has_text(&w, ids[1]));
	assert_true(has_text(&w, small));
	world_crash(&w);
	ids[n] = submit_of(&w, "ann", TEXT);
	world_verb(&w, IN_CANCEL, ids[n]);
	assert_false(has_text(&w, ids[1]));
	assert_true(has_text(&w, ids[2]));
	assert_true(has_text(&w, old));
	assert_true(has_text(&w, small));
	world_done(&w);
}

/* A core that was loaded with n finished jobs of so many bytes each, which ended in the order of
 * their submit or against it. *ret_cpu: what the loading took. */
static struct core *loaded(size_t n, size_t bytes, bool backwards, clock_t *ret_cpu)
{
	struct core *c = core_new(&core_config_default);
	struct state s;

	mo_desc_init(&state_desc, &s);
	for (size_t i = 0; i < n; i++) {
		struct job *j = MO_INSERT(&s, jobs, s.n_jobs, &job_desc);

		j->id = (int64_t)i + 1;
		j->state = JOB_COMPLETED;
		j->ended_at = (int64_t)(backwards ? n - i : i + 1);
		j->config.text = mo_alloc(bytes + 1);
		memset(j->config.text, 'x', bytes);
	}
	clock_t begun = clock();

	core_load(c, &s);
	*ret_cpu = clock() - begun;
	return c;
}

/* A state of before the limit is brought below it when it is loaded. */
static void test_loaded(void **state)
{
	size_t with = 0, n = MO_RETAINED_TEXTS_MAX / TEXT + 5;
	clock_t cpu;
	struct core *c = loaded(n, TEXT, true, &cpu);

	for (size_t i = 0; i < n; i++)
		with += core_state(c)->jobs[i]->config.text != NULL;
	assert_int_equal(with, MO_RETAINED_TEXTS_MAX / TEXT);
	assert_non_null(core_state(c)->jobs[0]->config.text); /* the last to end */
	assert_null(core_state(c)->jobs[n - 1]->config.text);
	assert_int_equal(core_state(c)->jobs[n - 1]->let_go, TEXT);
	core_free(c);
}

/* One user's unfinished jobs leave room for those of others; all together have a limit, and what
 * ends makes room. */
static void test_unfinished(void **state)
{
	const int64_t half = MO_ACTIVE_TEXTS_MAX / 2 / LONG;
	struct world w;
	int64_t first, n = 0;

	world_init(&w, 1, 8);
	first = submit_of(&w, "ann", LONG);
	for (int64_t i = 1; i < half; i++)
		assert_true(submit_of(&w, "ann", LONG) > 0);
	assert_int_equal(submit_of(&w, "ann", LONG), -429);
	assert_non_null(strstr(w.reply_text, "128 of 256 MiB (128 of ann)"));
	while (submit_of(&w, "bob", LONG) > 0)
		n++;
	assert_int_equal(n, half / 2);
	assert_true(submit_of(&w, "eve", LONG) > 0);
	world_verb(&w, IN_CANCEL, first);
	assert_int_equal(submit_of(&w, "ann", LONG), -429); /* she still has more than is left */
	world_crash(&w);
	assert_int_equal(submit_of(&w, "ann", LONG), -429);
	assert_true(submit_of(&w, "eve", LONG) > 0);
	world_done(&w);
}

/* Jobs that ended against the order of their submit cost a start little more than others: a search
 * from the end for each of them took a hundred times as long. */
static void test_many_backwards(void **state)
{
	clock_t in_order, against;

	core_free(loaded(15000, 4200, false, &in_order));
	struct core *c = loaded(15000, 4200, true, &against);

	assert_true(against < 20 * (in_order + CLOCKS_PER_SEC / 100));
	assert_non_null(core_state(c)->jobs[0]->config.text);
	core_free(c);
}

static size_t words_of(const struct job *j)
{
	const struct submit *s = &j->spec;

	return s->n_argv + s->n_env + s->recipe.n_env + s->recipe.engine.n_args;
}

static void add_words(struct submit *s, size_t bytes)
{
	_cleanup_(mo_freep) char *text = mo_alloc(bytes + 1);
	struct kv *arg = MO_ADD(&s->recipe.engine, args, &kv_desc);
	struct recipe_env *named = MO_ADD(&s->recipe, env, &recipe_env_desc);
	struct env_item *item = MO_ADD(s, env, &env_item_desc);

	memset(text, 'x', bytes);
	arg->key = mo_strdup("a");
	arg->value = mo_strdup(text);
	mo_strs_add(&s->argv, &s->n_argv, text);
	named->name = mo_strdup("A");
	named->value = mo_strdup(text);
	item->name = mo_strdup("A");
	item->value = mo_strdup(text);
}

/* Words and variables are a part of what a finished job weighs, and go with its recipe; so do its
 * own line rules, and of the engine only its layout stays its own. */
static void test_words(void **state)
{
	enum { BYTES = TEXT / 2, N = MO_RETAINED_TEXTS_MAX / (4 * BYTES) };
	struct core *c = core_new(&core_config_default);
	struct state s;

	mo_desc_init(&state_desc, &s);
	for (size_t i = 0; i <= N; i++) {
		struct job *j = MO_INSERT(&s, jobs, s.n_jobs, &job_desc);

		j->id = j->ended_at = (int64_t)i + 1;
		j->state = JOB_COMPLETED;
		add_words(&j->spec, BYTES);
		struct rank *rank = MO_ADD(&j->run, ranks, &rank_desc);
		mo_strs_add(&rank->tail, &rank->n_tail, "its last line");
		j->spec.recipe.own_lines = 1;
		MO_ADD(&j->spec.engine, rules, &line_rule_desc)->pattern = mo_strdup("mine");
		mo_str_set(&j->spec.engine.layout.entry, "my.pt");
	}
	core_load(c, &s);
	const struct job *first = core_state(c)->jobs[0], *last = core_state(c)->jobs[N];

	assert_int_equal(words_of(first) + first->spec.engine.n_rules, 0);
	assert_string_equal(first->spec.engine.layout.entry, "my.pt");
	assert_in_range(first->let_go, 4 * BYTES, 4 * BYTES + 4096);
	assert_int_equal(words_of(last), 4);
	assert_int_equal(last->run.n_ranks, 1);
	assert_int_equal(last->run.ranks[0].n_tail, 0);
	assert_string_equal(last->spec.engine.rules[0].pattern, "mine");
	core_free(c);
}

/* With line rules and words for a resume of its own, before the one of the engine. */
static int64_t submit_with_own(struct world *w, int number)
{
	struct submit s;

	world_recipe(&s, 64);
	for (int i = 0; i < (number > 0 ? 2 : 1); i++) {
		struct line_rule *rule = MO_ADD(&s.engine, rules, &line_rule_desc);

		rule->kind = LINE_SAMPLE;
		rule->pattern =
			number > 0 && i == 0 ? mo_printf("it %d", number) : mo_strdup("step");
	}
	/* of no weight here */
	mo_strs_add(&s.recipe.engine.args_unchecked, &s.recipe.engine.n_args_unchecked, "x");
	if (number > 0) {
		s.recipe.own_lines = 1;
		s.recipe.checkpoint.layout = mo_printf("ckpt-%d.pt", number);
		mo_str_set(&s.engine.layout.entry, s.recipe.checkpoint.layout);
		mo_strs_add(&s.engine.resume, &s.engine.n_resume, "--init_from=resume");
	}
	int64_t id = world_submit(w, &s);
	mo_desc_done(&submit_desc, &s);
	return id;
}

static void assert_own(const struct world *w, int64_t id, int number)
{
	_cleanup_(mo_freep) char *pattern = mo_printf("it %d", number),
				 *entry = mo_printf("ckpt-%d.pt", number);
	const struct engine *e = &world_job(w, id)->spec.engine;

	assert_int_equal(e->n_rules, 2);
	assert_string_equal(e->rules[0].pattern, pattern);
	assert_string_equal(e->rules[1].pattern, "step");
	assert_string_equal(e->layout.entry, entry);
	assert_int_equal(e->n_resume, 1);
}

/* What is a recipe's own is no reason to keep an engine for it, whoever came first. */
static void test_own_of_the_recipe(void **state)
{
	struct world w;

	world_init(&w, 1, 8);
	int64_t a = submit_with_own(&w, 1), plain = submit_with_own(&w, 0),
		b = submit_with_own(&w, 2), other = submit_with_own(&w, 0);

	for (int i = 0; i < 2; i++) {
		assert_own(&w, a, 1);
		assert_own(&w, b, 2);
		assert_int_equal(world_job(&w, plain)->spec.engine.n_rules, 1);
		assert_ptr_equal(world_job(&w, plain)->spec.engine.kind,
				 world_job(&w, b)->spec.engine.kind);
		assert_ptr_equal(world_job(&w, plain)->spec.engine.rules,
				 world_job(&w, other)->spec.engine.rules);
		world_crash(&w);
	}
	world_verb(&w, IN_CANCEL, a);
	assert_own(&w, a, 1);
	world_done(&w);
}

static void test_shared(void **state)
{
	struct world w;

	world_init(&w, 1, 8);
	int64_t a = world_submit_gpus(&w, 64), b = world_submit_gpus(&w, 64), c;
	struct submit other;
	struct job copy;

	world_recipe(&other, 64);
	mo_str_set(&other.engine.kind, "other");
	c = world_submit(&w, &other);
	mo_desc_done(&submit_desc, &other);
	const struct submit *first = &world_job(&w, a)->spec;
	assert_ptr_equal(first->engine.kind, world_job(&w, b)->spec.engine.kind);
	assert_ptr_not_equal(first->engine.kind, world_job(&w, c)->spec.engine.kind);
	/* a copy is its own, and outlives them */
	mo_desc_init(&job_desc, &copy);
	mo_desc_copy(&job_desc, &copy, world_job(&w, a));
	assert_ptr_not_equal(first->engine.kind, copy.spec.engine.kind);
	world_crash(&w);
	assert_ptr_equal(world_job(&w, a)->spec.engine.kind, world_job(&w, b)->spec.engine.kind);
	world_done(&w);
	assert_string_equal(copy.spec.engine.kind, "torch");
	mo_desc_done(&job_desc, &copy);
}

/* What a node says of a started rank. */
static void claim(struct world *w, size_t toy, int64_t id, int64_t rank, const char *config)
{
	struct note *n = world_note(w, toy, id, NOTE_STARTED);

	n->rank = rank;
	mo_str_set(&n->config, config);
	world_beat(w, toy);
}

/* It counts where it was asked for: of an experiment, from the first rank's node, once in an
 * attempt. */
static void test_reported_by_a_node(void **state)
{
	struct submit spec;
	struct world w;

	for (int asked = 1; asked >= 0; asked--) {
		world_init(&w, 2, 8);
		w.no_launch = true;
		world_recipe(&spec, 16);
		spec.engine.experiment = asked ? mo_strdup("primus") : NULL;
		int64_t id = world_submit(&w, &spec);
		mo_desc_done(&submit_desc, &spec);
		world_run(&w, S);
		size_t first = (size_t)(world_job(&w, id)->run.places[0].node[1] - '0');

		for (size_t i = 0; i < 2; i++)
			*MO_GROW(w.toys[i].steps, w.toys[i].n_steps) =
				(struct toy_step){ .job = id,
						   .attempt = 1,
						   .first_rank = i == first ? 0 : 8,
						   .n_ranks = 8,
						   .resume = -1 };
		claim(&w, 1 - first, id, 8, "of another rank");
		claim(&w, 1 - first, id, 0, "of another node");
		assert_null(world_job(&w, id)->config.text);
		claim(&w, first, id, 0, "of the first");
		claim(&w, first, id, 0, "again");
		if (asked)
			assert_string_equal(world_job(&w, id)->config.text, "of the first");
		else
			assert_null(world_job(&w, id)->config.text);
		world_done(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finished),
		cmocka_unit_test(test_many_backwards),
		cmocka_unit_test(test_loaded),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_own_of_the_recipe),
		cmocka_unit_test(test_reported_by_a_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
