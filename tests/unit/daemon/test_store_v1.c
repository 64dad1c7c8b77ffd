/* A store that a version before this one wrote, with every type of record (tests/fixtures/store-v1,
 * never changed): it is read, becomes the state that it was, and goes on being one. And what such a
 * store may be beside that: a log of both versions, one with records that are unknown, damaged,
 * of a later version or in another order. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/update/check.h"
#include "daemon/core/state/numbers.h"
#include "daemon/core/state/pace.h"
#include "daemon/journal.h"
#include "daemon/journal_replay.h"
#include "lib/base/fd.h"
#include "tests/core_inside.h"

#define FIXTURE "tests/fixtures/store-v1/"
#define S 1000000LL

struct texts {
	char **items;
	size_t n;
};
struct bed {
	char dir[64];
	struct texts log;
};

static char *read_fixture(const char *name)
{
	_cleanup_(mo_freep) char *path = mo_printf(MO_SOURCE_DIR "/" FIXTURE "%s", name);
	struct mo_buf b = { 0 };

	if (mo_read_file(path, 10 << 20, &b) < 0)
		fail_msg("%s cannot be read", path);
	return mo_buf_take(&b);
}

/* Lines of parts belong to the line after them. */
static struct texts texts_of(const char *name)
{
	_cleanup_(mo_freep) char *all = read_fixture(name);
	struct texts t = { 0 };

	for (char *at = all, *begin = all, *end; *at; at = end + 1) {
		end = strchr(at, '\n');
		assert_non_null(end);
		if (*at != '{')
			continue;
		*MO_GROW(t.items, t.n) = mo_strndup(begin, (size_t)(end - begin));
		begin = end + 1;
	}
	return t;
}

static void texts_done(struct texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->items[i]);
	free(t->items);
}

static int setup(void **state)
{
	struct bed *b = *state = mo_alloc(sizeof(*b));

	snprintf(b->dir, sizeof(b->dir), "/tmp/store-v1-XXXXXX");
	b->log = texts_of("log.txt");
	return mkdtemp(b->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct bed *b = *state;
	int r = mo_rm_rf(b->dir);

	texts_done(&b->log);
	free(b);
	return r;
}

static void append(const struct bed *b, const struct texts *t)
{
	_cleanup_(store_freep) struct store *store = NULL;

	assert_int_equal(store_open(b->dir, &store, NULL), 0);
	assert_int_equal(store_append(store, t->items, t->n, NULL), 0);
}

/* What a start makes of the store. NULL with err: it refuses. */
static struct core *start(const struct bed *b, struct mo_error *err)
{
	_cleanup_(store_freep) struct store *store = NULL;
	struct journal *journal = journal_new();
	struct core *core = core_new(&core_config_default);

	assert_int_equal(store_open(b->dir, &store, NULL), 0);
	if (journal_replay(journal, core, store, err) < 0) {
		core_free(core);
		core = NULL;
	}
	journal_free(journal);
	return core;
}

static struct core *starts(const struct bed *b)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct core *core = start(b, &err);

	if (!core)
		fail_msg("refused: %s", err.text);
	_cleanup_(mo_freep) char *wrong = state_check(core);
	if (wrong)
		fail_msg("%s", wrong);
	return core;
}

static void refused(const struct bed *b, const char *words)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	assert_null(start(b, &err));
	if (!strstr(err.text, words))
		fail_msg("it says: %s", err.text);
}

static void equal(const struct core *a, const struct core *b)
{
	_cleanup_(mo_freep) char *diff = mo_desc_diff(&state_desc, core_state(a), core_state(b));

	if (diff)
		fail_msg("the state differs at %s", diff);
}

/* Without what that version did not keep: marks of ledgers, how long the last iteration of a failed
 * attempt was under way, when it was placed and how long it started, which checkpoints were
 * announced, what losses and paces say. */
static struct core *as_then(struct core *core)
{
	const struct state *s = core_state(core);

	for (size_t i = 0; i < s->n_jobs; i++) {
		struct job *j = s->jobs[i];

		mo_vec_clear(&ledger_mark_desc, (void **)&j->ledger_marks, &j->n_ledger_marks);
		j->failure.unfinished_us = j->run.placed_at = j->run.start_us = MO_NONE;
		j->progress.longest_start_us = MO_NONE;
		mo_desc_free(&numbers_desc, j->progress.numbers);
		j->progress.numbers = NULL;
		mo_desc_free(&pace_desc, j->progress.pace);
		j->progress.pace = NULL;
		for (size_t k = 0; k < j->n_checkpoints; k++)
			j->checkpoints[k].announced = false;
	}
	return core;
}

/* What the version that wrote it had at its end. */
static struct core *recorded(void)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *text = read_fixture("final.txt");
	struct core *core = core_new(&core_config_default);
	struct journal *journal = journal_new();

	if (journal_load(journal, core, text, strlen(text), &err) < 0)
		fail_msg("%s", err.text);
	journal_free(journal);
	return core;
}

static void put_snapshot(const struct bed *b, const char *text, size_t n)
{
	_cleanup_(store_freep) struct store *store = NULL;
	int64_t bytes;

	assert_int_equal(store_open(b->dir, &store, NULL), 0);
	assert_int_equal(store_write_snapshot(store, store_seq(store), text, n), 0);
	assert_int_equal(store_adopt_snapshot(store, store_seq(store), &bytes, NULL), 0);
}

static void every_type_is_in_it(void **state)
{
	static const char *const v1[] = {
		"controller", "submit",  "job",           "intent",     "scan",      "place",
		"accept",     "notes",   "fail",          "gone",       "forgotten", "node",
		"node_state", "drain",   "wait_node",     "strange",    "hung",      "incident",
		"checkpoint", "token",   "token_revoked", "event",      "health",    "check",
		"measured",   "clock",   "token_used",    "node_token", "ack",       "restored",
		"obeys",      "discard", "leaving",       "config",
	};
	const struct bed *b = *state;

	for (size_t i = 0; i < ELEMENTSOF(v1); i++) {
		_cleanup_(mo_freep) char *head = mo_printf("{\"v\":1,\"type\":\"%s\",", v1[i]);
		bool found = false;

		for (size_t k = 0; k < b->log.n; k++)
			found |= strstr(b->log.items[k], head) != NULL;
		if (!found)
			fail_msg("no record %s", v1[i]);
	}
}

static void its_log_is_the_state_that_was(void **state)
{
	const struct bed *b = *state;

	append(b, &b->log);
	_cleanup_(core_freep) struct core *now = starts(b), *then = recorded();
	equal(then, as_then(now));
	/* both could have lost the same: by what is known of it */
	const struct state *s = core_state(now);
	assert_int_equal(s->n_jobs, 7);
	assert_int_equal(s->n_nodes, 5);
	assert_string_equal(s->jobs[0]->spec.recipe.name, "mixtral-against-its-plan");
	assert_int_equal(s->jobs[0]->state, JOB_COMPLETED);
	assert_int_equal(s->jobs[2]->attempt, 3);
	assert_int_equal(s->jobs[5]->spec.recipe.gpus, 64);
	assert_string_equal(s->jobs[6]->spec.env[0].value, "WARN \"quoted\" \303\251");
	assert_string_equal(s->jobs[6]->spec.engine.rules[0].pattern, "saved to (?<path>/.*)");
}

static void its_snapshot_and_log_are_the_same_state(void **state)
{
	struct bed *b = *state;
	_cleanup_(mo_freep) char *snapshot = read_fixture("snapshot.txt");
	_cleanup_(texts_done) struct texts after = texts_of("after.txt");

	/* it stands for the records before it */
	struct texts before = { b->log.items, b->log.n - after.n };
	append(b, &before);
	put_snapshot(b, snapshot, strlen(snapshot));
	append(b, &after);
	_cleanup_(core_freep) struct core *now = starts(b), *then = recorded();
	equal(then, as_then(now));
}

/* One event, stored as a turn does it. */
static void turn(const struct bed *b, const struct core_input *e)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(core_freep) struct core *core = core_new(&core_config_default);
	_cleanup_(store_freep) struct store *store = NULL;
	struct journal *journal = journal_new();
	struct core_out out = { 0 };

	assert_int_equal(store_open(b->dir, &store, NULL), 0);
	assert_int_equal(journal_replay(journal, core, store, &err), 0);
	core_turn(core, e, core_state(core)->time + S, &out);
	assert_true(out.n_records > 0);
	for (size_t i = 0; i < out.n_records; i++) {
		_cleanup_(mo_freep) char *text = journal_record_text(journal, &out.records[i]);

		assert_int_equal(store_append(store, &text, 1, NULL), 0);
	}
	core_out_done(&out);
	store = store_free(store);
	journal_free(journal);
	_cleanup_(core_freep) struct core *again = starts(b);
	equal(core, again);
}

/* Records of now follow those of then, any number of times. */
static void a_log_of_both_versions(void **state)
{
	const struct bed *b = *state;
	struct submit spec;

	append(b, &b->log);
	turn(b, &(struct core_input){ .type = IN_START });
	mo_desc_init(&submit_desc, &spec);
	spec.user = mo_strdup("dee");
	spec.recipe.name = mo_strdup("of-now");
	spec.recipe.gpus = 2;
	spec.engine.kind = mo_strdup("torch");
	turn(b,
	     &(struct core_input){
		     .type = IN_SUBMIT, .request = 1, .submit = &spec, .by.user = (char *)"dee" });
	mo_desc_done(&submit_desc, &spec);
	turn(b, &(struct core_input){ .type = IN_RESUME,
				      .request = 1,
				      .by = { .user = (char *)"ann", .may_all = true },
				      .resume = &(struct in_resume){ 5 } });
	_cleanup_(core_freep) struct core *core = starts(b);
	const struct job *j = job_find(core_state(core), 8);
	assert_non_null(j);
	assert_string_equal(j->spec.recipe.name, "of-now");
	assert_int_equal(job_find(core_state(core), 5)->state, JOB_QUEUED);
	/* and once all of it is a snapshot of now */
	struct journal *journal = journal_new();
	struct mo_buf text = { 0 };
	journal_snapshot_text(journal, core_state(core), &text);
	put_snapshot(b, text.data, text.len);
	mo_buf_done(&text);
	journal_free(journal);
	_cleanup_(core_freep) struct core *again = starts(b);
	equal(core, again);
}

/* ---- what may stand in it beside that ---- */

/* Behind the whole log. */
static void refused_with(const struct bed *b, const char *text, const char *words)
{
	char *one = (char *)(uintptr_t)text;
	const struct texts more = { &one, 1 };
	_cleanup_(mo_freep) char *all = NULL;

	append(b, &b->log);
	append(b, &more);
	all = mo_printf("stored record %zu %s", b->log.n + 1, words);
	refused(b, all);
}

static void an_unknown_record(void **state)
{
	refused_with(*state, "{\"v\":1,\"type\":\"prophecy\",\"t\":1714600000000000,\"job\":3}",
		     "cannot be read (type prophecy of j-3): type: expected one of controller, "
		     "submit");
}

static void refused_after(struct bed *b, const char *text, const char *words)
{
	char *one = (char *)(uintptr_t)text;
	const struct texts more = { &one, 1 };

	append(b, &b->log);
	append(b, &more);
	refused(b, words);
}

/* Whoever went back to an older moed is not sent to give up what the newer one stored. */
static void a_type_that_came_later(void **state)
{
	refused_after(*state, "{\"v\":2,\"type\":\"prophecy\",\"t\":1714600000000000}",
		      "if a newer moed ran here, start that; else 'moed --quarantine'");
}

/* It is a job's: without its number nobody knows which job is not as it was. */
static void a_configuration_of_nobody(void **state)
{
	refused_after(*state, "{\"v\":2,\"type\":\"config\",\"t\":1714600000000000}",
		      "whose it is cannot be told");
}

static void a_damaged_record(void **state)
{
	refused_with(*state, "{\"v\":1,\"type\":\"intent\",\"t\":1714600000000000,\"job\":3,\"val",
		     "cannot be read (type intent of j-3)");
}

static void one_that_makes_no_sense(void **state)
{
	refused_with(*state,
		     "{\"v\":1,\"type\":\"intent\",\"t\":1714600000000000,\"job\":99,\"value\":1}",
		     "cannot be read (type intent of j-99): it makes no sense after those before");
}

/* Whatever else is in it: what a later moed wrote is never taken for damage. */
static void a_downgrade(void **state)
{
	refused_with(*state,
		     "{\"v\":99,\"type\":\"job\",\"t\":1714600000000000,\"job\":3,\"value\":0}",
		     "has version 99");
}

static void a_downgrade_with_words_of_its_own(void **state)
{
	refused_with(*state, "{\"v\":99,\"type\":\"prophecy\",\"t\":[],\"job\":3}",
		     "has version 99");
}

static void swap(const struct bed *b, size_t seq)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/moe.db", b->dir);
	_cleanup_(mo_freep) char *sql = mo_printf("update records set seq=-1 where seq=%zu; update "
						  "records set seq=%zu where seq=%zu;"
						  "update records set seq=%zu where seq=-1",
						  seq, seq, seq + 1, seq + 1);
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* Each two neighbours: what is taken holds together, the rest is refused by its number. */
static void two_records_swapped(void **state)
{
	const struct bed *b = *state;
	size_t n_refused = 0;

	append(b, &b->log);
	for (size_t seq = 1; seq < b->log.n; seq++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };

		swap(b, seq);
		_cleanup_(core_freep) struct core *core = start(b, &err);
		_cleanup_(mo_freep) char *wrong = core ? state_check(core) : NULL;
		if (wrong)
			fail_msg("records %zu and %zu: %s", seq, seq + 1, wrong);
		if (!core && !strstr(err.text, "stored record "))
			fail_msg("records %zu and %zu: %s", seq, seq + 1, err.text);
		n_refused += !core;
		swap(b, seq);
	}
	assert_true(n_refused > 0 && n_refused < b->log.n - 1);
	_cleanup_(core_freep) struct core *now = starts(b), *then = recorded();
	equal(then, as_then(now));
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_type_is_in_it),
		T(its_log_is_the_state_that_was),
		T(its_snapshot_and_log_are_the_same_state),
		T(a_log_of_both_versions),
		T(an_unknown_record),
		T(a_type_that_came_later),
		T(a_configuration_of_nobody),
		T(a_damaged_record),
		T(one_that_makes_no_sense),
		T(a_downgrade),
		T(a_downgrade_with_words_of_its_own),
		T(two_records_swapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
