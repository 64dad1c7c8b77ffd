/* What the store gives back is the state that was: records and snapshots with shared and own parts,
 * any number of times; and what cannot be understood is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/core/state/shared.h"
#include "daemon/journal.h"
#include "daemon/journal_replay.h"
#include "lib/base/fd.h"
#include "tests/core_inside.h"

static char dir[64];
static struct store *store;
static struct journal *journal;
static struct core *core;
static int64_t now;

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/journal-test-XXXXXX");
	now = 1000000;
	if (!mkdtemp(dir) || store_open(dir, &store, NULL) < 0)
		return -1;
	core = core_new(&core_config_default);
	journal = journal_new();
	return 0;
}

static int teardown(void **state)
{
	core_free(core);
	journal = journal_free(journal);
	store = store_free(store);
	return mo_rm_rf(dir);
}

/* One event, stored as the turn does it. */
static void step(const struct core_input *e)
{
	struct core_out out = { 0 };

	now += 1000;
	core_turn(core, e, now, &out);
	for (size_t i = 0; i < out.n_records; i++) {
		_cleanup_(mo_freep) char *text = journal_record_text(journal, &out.records[i]);
		assert_int_equal(store_append(store, &text, 1, NULL), 0);
	}
	core_out_done(&out);
}

#define OWN 1000

/* variant: jobs of one variant share engine and environment; from OWN on they all do, but for a
 * line rule. */
static void submit(int variant)
{
	struct submit *s = mo_desc_new(&submit_desc);

	s->user = mo_strdup("ada");
	s->recipe.name = mo_printf("job-%d", variant);
	s->recipe.gpus = 2;
	s->recipe.engine.kind = mo_strdup("command");
	s->engine.kind = mo_printf("engine-%d", variant);
	mo_strs_add(&s->engine.argv, &s->engine.n_argv, "{argv}");
	struct env_item *item = MO_ADD(s, env, &env_item_desc);
	item->name = mo_strdup("PATH");
	item->value = mo_printf("/bin/%d\nsecond line of \"parts 7 {}\"", variant);
	struct env_profile *profile = MO_ADD(s, profiles, &env_profile_desc);
	profile->layer = ENV_PROFILE;
	if (variant >= OWN) {
		s->recipe.own_lines = 1;
		MO_ADD(&s->engine, rules, &line_rule_desc)->pattern = mo_printf("mine %d", variant);
		mo_str_set(&s->engine.kind, "engine-own");
		mo_str_set(&item->value, "/bin");
	}
	mo_strs_add(&profile->gpu, &profile->n_gpu, "mi300x");
	MO_ADD(profile, items, &env_item_desc)->name = mo_strdup("HSA");
	step(&(struct core_input){ .type = IN_SUBMIT, .submit = s, .by.user = (char *)"ada" });
	assert_null(s->user); /* its content is the job's */
	mo_desc_free(&submit_desc, s);
}

static void put(int64_t seq, const struct mo_buf *text)
{
	int64_t bytes;

	assert_int_equal(store_write_snapshot(store, seq, text->data, text->len), 0);
	assert_int_equal(store_adopt_snapshot(store, seq, &bytes, NULL), 0);
}

static void snapshot(bool stored)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	journal_snapshot_text(journal, core_state(core), &text);
	journal_snapshot_taken(journal);
	if (stored)
		put(store_seq(store), &text);
}

/* The controller dies and comes back: the same state, from which it goes on. */
static void restart(void)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct core *fresh = core_new(&core_config_default);

	store_free(store);
	store = NULL;
	assert_int_equal(store_open(dir, &store, NULL), 0);
	journal_free(journal);
	journal = journal_new();
	int r = journal_replay(journal, fresh, store, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	_cleanup_(mo_freep) char *diff =
		mo_desc_diff(&state_desc, core_state(core), core_state(fresh));
	if (diff)
		fail_msg("the state differs at %s", diff);
	core_free(core);
	core = fresh;
}

static void test_empty(void **state)
{
	restart();
	step(&(struct core_input){ .type = IN_START });
	restart();
	assert_int_equal(core_state(core)->epoch, 1);
}

static void test_records(void **state)
{
	for (int i = 0; i < 10; i++)
		submit(i % 3);
	restart();
	submit(1);
	submit(7);
	restart();
	assert_int_equal(core_state(core)->n_jobs, 12);
	assert_string_equal(core_state(core)->jobs[11]->spec.engine.kind, "engine-7");
}

/* A record of an event whose type only another version has. */
static void store_strange_event(void)
{
	struct record r;

	mo_desc_init(&record_desc, &r);
	r.version = RECORD_VERSION;
	r.type = REC_EVENT;
	r.time = now;
	r.event = mo_desc_new(&event_desc);
	r.event->seq = core_state(core)->next_event_seq;
	r.event->time = now;
	r.event->type = mo_strdup("job.levitates");
	r.event->message = mo_strdup("j-1 levitates");
	assert_null(event_about(r.event->type));
	_cleanup_(mo_freep) char *text = journal_record_text(journal, &r);
	assert_int_equal(store_append(store, &text, 1, NULL), 0);
	assert_int_equal(core_update(core, &r), 0);
	mo_desc_done(&record_desc, &r);
}

static void test_event_of_another_version(void **state)
{
	submit(1);
	store_strange_event();
	restart();
	snapshot(true);
	restart();
	submit(2);
	const struct event *e = &core_state(core)->events[1];
	assert_string_equal(e->type, "job.levitates");
	assert_string_equal(e->message, "j-1 levitates");
	assert_string_equal(core_state(core)->events[2].type, "job.submitted");
	assert_int_equal(core_state(core)->events[2].seq, e->seq + 1);
}

static void test_snapshots(void **state)
{
	for (int i = 0; i < 6; i++)
		submit(i % 3);
	snapshot(true);
	restart();
	submit(2);
	submit(9);
	/* a snapshot that could not be stored changes nothing */
	snapshot(false);
	submit(9);
	submit(10);
	restart();
	snapshot(true);
	snapshot(true);
	submit(10);
	restart();
	assert_int_equal(core_state(core)->n_jobs, 11);
}

/* What is stored while a snapshot is being written comes after it, new sets and known ones; a
 * second one that never ends up in the store takes nothing away. */
static void test_records_beside_a_snapshot(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	for (int i = 0; i < 6; i++)
		submit(i % 3);
	int64_t seq = store_seq(store);
	journal_snapshot_text(journal, core_state(core), &text);
	journal_snapshot_taken(journal);
	submit(1);
	submit(20);
	submit(20);
	put(seq, &text);
	submit(20);
	submit(2);
	restart();
	snapshot(false);
	submit(20);
	submit(21);
	restart();
	assert_int_equal(core_state(core)->n_jobs, 13);
}

/* More distinct sets than are shared: the rest is stored whole. */
static void test_many_parts(void **state)
{
	for (int i = 0; i < 400; i++)
		submit(i);
	restart();
	snapshot(true);
	submit(3);
	submit(399);
	restart();
	assert_int_equal(core_state(core)->n_jobs, 402);
}

static void test_shared_parts_are_stored_once(void **state)
{
	struct mo_buf text = { 0 };

	for (int i = 0; i < 50; i++)
		submit(1);
	journal_snapshot_text(journal, core_state(core), &text);
	size_t n = 0;
	for (const char *p = text.data; (p = strstr(p, "engine-1")); p++)
		n++;
	assert_int_equal(n, 1);
	mo_buf_done(&text);
}

static void expect_refusal(const char *text, const char *words)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *copy = mo_strdup(text);
	struct core *fresh = core_new(&core_config_default);
	struct journal *j = journal_new();

	assert_int_equal(store_append(store, &copy, 1, NULL), 0);
	assert_true(journal_replay(j, fresh, store, &err) < 0);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
	journal_free(j);
	core_free(fresh);
}

static void test_other_text(void **state)
{
	expect_refusal("hello", "stored record 1 cannot be read");
}
static void test_newer_record(void **state)
{
	expect_refusal("{\"v\":99,\"type\":\"controller\",\"t\":5,\"value\":1}", "newer moed");
}
static void test_lost_parts(void **state)
{
	expect_refusal("{\"v\":1,\"type\":\"submit\",\"t\":5,\"job\":1,\"submit\":{\"user\":\"x\","
		       "\"parts\":3}}",
		       "parts 3");
}
static void test_bad_parts(void **state)
{
	expect_refusal("parts x {}\n{}", "malformed");
}
static void test_impossible_record(void **state)
{
	expect_refusal("{\"v\":1,\"type\":\"intent\",\"t\":5,\"job\":77,\"value\":1}",
		       "makes no sense");
}

/* A variable with another value in every job makes no other set of it, in records and in a
 * snapshot. */
static void test_environments_of_their_own(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	size_t sets = 0;

	for (int i = 0; i < 300; i++) {
		struct submit s;
		mo_desc_init(&submit_desc, &s);
		s.recipe.gpus = 1;
		s.engine.kind = mo_strdup("engine");
		struct env_item *item = MO_ADD(&s, env, &env_item_desc);
		item->name = mo_strdup("RUN");
		item->value = mo_printf("%d", i);
		step(&(struct core_input){ .type = IN_SUBMIT, .submit = &s });
		mo_desc_done(&submit_desc, &s);
	}
	assert_int_equal(journal->parts.n, 1);
	restart();
	assert_string_equal(core_state(core)->jobs[298]->spec.env[0].value, "298");
	journal_snapshot_text(journal, core_state(core), &text);
	for (const char *at = text.data; (at = strstr(at, "\nparts ")) != NULL; at++)
		sets++;
	assert_int_equal(sets, 1);
	snapshot(true);
	restart();
	assert_string_equal(core_state(core)->jobs[299]->spec.env[0].value, "299");
	assert_ptr_equal(core_state(core)->jobs[0]->spec.engine.kind,
			 core_state(core)->jobs[299]->spec.engine.kind);
	submit(0);
	restart();
}

/* What a submit shares is known by its address; what one has of its own beside it makes it another
 * set, although the address is the same. */
static void test_shared_by_address(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf lines = { 0 };
	struct parts_table table = { 0 };
	struct shared_pool pool = { 0 };
	struct submit a, b;

	mo_desc_init(&submit_desc, &a);
	mo_desc_init(&submit_desc, &b);
	mo_str_set(&a.engine.kind, "engine");
	MO_ADD(&a.engine, rules, &line_rule_desc)->pattern = mo_strdup("the engine's");
	shared_pool_take(&pool, &a);
	shared_pool_copy(&pool, &b, &a);
	b.recipe.own_lines = 1;
	assert_ptr_equal(a.shared, b.shared);
	assert_int_equal(parts_refer(&table, &a, &lines), 1);
	assert_int_equal(parts_refer(&table, &b, &lines), 2);
	assert_int_equal(parts_refer(&table, &a, &lines), 1);
	b.recipe.own_lines = 0;
	assert_int_equal(parts_refer(&table, &b, &lines), 1);
	submit_unique(&b);
	assert_int_equal(parts_refer(&table, &b, &lines), 1); /* by what it says */
	parts_table_done(&table);
	mo_desc_done(&submit_desc, &a);
	mo_desc_done(&submit_desc, &b);
	assert_int_equal(pool.items[0]->refs, 1);
	shared_pool_done(&pool);
}

/* Snapshots of before had the environment in the parts. */
static void test_snapshot_of_before(void **state)
{
	struct core *fresh = core_new(&core_config_default);
	struct mo_buf text = { 0 };

	mo_buf_str(&text, "moe-snapshot 1\n"
			  "parts 4 "
			  "{\"engine\":{\"kind\":\"k\"},\"env\":[{\"name\":\"A\",\"value\":\"b\"}],"
			  "\"profiles\":[]}\n{\"epoch\":3,\"next_job\":9,\"jobs\":["
			  "{\"id\":7,\"state\":\"queued\",\"spec\":{\"parts\":4}},"
			  "{\"id\":8,\"state\":\"queued\",\"spec\":{\"parts\":4}}]}");
	put(0, &text);
	mo_buf_done(&text);
	assert_int_equal(journal_replay(journal, fresh, store, NULL), 0);
	const struct job *j = core_state(fresh)->jobs[1];
	assert_string_equal(j->spec.engine.kind, "k");
	assert_int_equal(j->spec.n_env, 1);
	assert_string_equal(j->spec.env[0].value, "b");
	core_free(fresh);
}

static void test_newer_snapshot(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct core *fresh = core_new(&core_config_default);

	struct mo_buf text = { 0 };
	mo_buf_str(&text, "moe-snapshot 3\n{}");
	put(0, &text);
	mo_buf_done(&text);
	assert_true(journal_replay(journal, fresh, store, &err) < 0);
	assert_non_null(strstr(err.text, "newer moed"));
	core_free(fresh);
}

static size_t count(const struct mo_buf *text, const char *mark)
{
	size_t n = 0;

	for (const char *at = strstr(text->data, mark); at; at = strstr(at + 1, mark))
		n++;
	return n;
}

/* What is a recipe's own stands with each job, however many there are, and the engine once. */
static void test_own_of_recipes(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	enum { N = 20 };

	for (int i = 0; i < N; i++)
		submit(OWN + i);
	for (int i = 0; i < 3; i++) {
		const struct state *s = core_state(core);

		for (size_t k = 0; k < N; k++) {
			_cleanup_(mo_freep) char *mine = mo_printf("mine %zu", OWN + k);
			assert_string_equal(s->jobs[k]->spec.engine.rules[0].pattern, mine);
			assert_ptr_equal(s->jobs[k]->spec.engine.kind,
					 s->jobs[0]->spec.engine.kind);
		}
		restart();
		if (i == 1)
			snapshot(true);
	}
	journal_snapshot_text(journal, core_state(core), &text);
	assert_int_equal(count(&text, "engine-own"), 1);
	assert_int_equal(count(&text, "mine "), N);
}

/* CPU time that a start takes for n finished jobs that ended against their order; of each second
 * one the engine is its own. */
static clock_t start_cost(size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct journal *j = journal_new();
	struct core *c = core_new(&core_config_default);
	struct state s;

	mo_desc_init(&state_desc, &s);
	for (size_t i = 0; i < n; i++) {
		struct job *k = MO_INSERT(&s, jobs, s.n_jobs, &job_desc);

		k->id = (int64_t)i + 1;
		k->state = JOB_COMPLETED;
		k->ended_at = (int64_t)(n - i);
		k->spec.engine.kind = mo_printf("engine-%zu", i % 2 ? i : 0);
		k->config.text = mo_alloc(5001);
		memset(k->config.text, 'x', 5000);
	}
	journal_snapshot_text(j, &s, &text);
	mo_desc_done(&state_desc, &s);
	clock_t begun = clock();

	assert_int_equal(journal_load(j, c, text.data, text.len, NULL), 0);
	clock_t cost = clock() - begun;

	assert_int_equal(core_state(c)->n_jobs, n);
	core_free(c);
	journal_free(j);
	return cost;
}

/* Jobs may be a hundred thousand: a start takes each into hand once. */
static void test_start_grows_with_the_jobs(void **state)
{
	bool good = false;

	for (int tries = 0; tries < 3 && !good; tries++) {
		clock_t few = start_cost(1000);

		good = start_cost(8000) < 14 * few;
	}
	assert_true(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_event_of_another_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_records_beside_a_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_parts, setup, teardown),
		cmocka_unit_test(test_shared_by_address),
		cmocka_unit_test_setup_teardown(test_shared_parts_are_stored_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_newer_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_impossible_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_environments_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot_of_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_newer_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_of_recipes, setup, teardown),
		cmocka_unit_test(test_start_grows_with_the_jobs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
