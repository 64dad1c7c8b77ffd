/* Which events a webhook is sent, in what portions, and when it is tried again. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/rules/webhook.h"
#include "lib/model/limits.h"

/* A core with events told by hand: which, by their seq, is known to the test. */
struct bed {
	struct core *core;
	int64_t now, job;
};

static int64_t tell(struct bed *b, int64_t job, const char *type, int64_t n)
{
	int64_t first = core_state(b->core)->next_event_seq;

	while (n-- > 0) {
		struct record r;

		record_init(&r, REC_EVENT);
		r.time = ++b->now;
		r.event = mo_desc_new(&event_desc);
		r.event->seq = core_state(b->core)->next_event_seq;
		r.event->job = job;
		r.event->type = mo_strdup(type);
		assert_int_equal(core_update(b->core, &r), 0);
		mo_desc_done(&record_desc, &r);
	}
	return first;
}

static int setup(void **state)
{
	struct bed *b = *state = mo_alloc(sizeof(*b));
	struct core_out out = { 0 };
	struct submit spec;

	b->core = core_new(&core_config_default);
	world_recipe(&spec, 8);
	mo_str_set(&spec.recipe.name, "train-2t");
	core_turn(b->core, &(struct core_input){ .type = IN_SUBMIT, .request = 1, .submit = &spec },
		  b->now = S, &out);
	core_out_done(&out);
	mo_desc_done(&submit_desc, &spec);
	b->job = core_state(b->core)->next_job - 1;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	core_free(b->core);
	free(b);
	return 0;
}

static void only_what_it_asks_for(void **state)
{
	struct bed *b = *state;
	const struct state *s = core_state(b->core);
	char *types[] = { (char *)"job.failed", (char *)"node.*" }, *jobs[] = { (char *)"train-*" };
	char *others[] = { (char *)"eval-*" };
	struct webhook all = { 0 }, some = { .types = types, .n_types = 2 },
		       of_job = { .jobs = jobs, .n_jobs = 1 },
		       of_others = { .jobs = others, .n_jobs = 1 };
	struct webhook_batch batch;
	int64_t from = tell(b, b->job, "job.failed", 1);

	tell(b, MO_NONE, "node.down", 1);
	tell(b, b->job, "job.queued", 1);
	webhook_batch(&all, s, from, &batch);
	assert_int_equal(batch.n, 3);
	webhook_batch(&some, s, from, &batch);
	assert_int_equal(batch.n, 2);
	assert_string_equal(batch.events[1]->type, "node.down");
	assert_int_equal(batch.next, s->next_event_seq);
	webhook_batch(&of_job, s, from, &batch);
	assert_int_equal(batch.n, 2);
	assert_string_equal(batch.events[1]->type, "job.queued");
	webhook_batch(&of_others, s, from, &batch);
	assert_int_equal(batch.n, 0);
	assert_int_equal(batch.next, s->next_event_seq);
	/* nothing new: it stays where it is */
	webhook_batch(&all, s, s->next_event_seq, &batch);
	assert_int_equal(batch.n, 0);
	assert_int_equal(batch.next, s->next_event_seq);
	assert_int_equal(batch.missed, 0);
}

static void many_go_in_portions_without_gap_or_repeat(void **state)
{
	struct bed *b = *state;
	const struct state *s = core_state(b->core);
	struct webhook all = { 0 };
	struct webhook_batch batch;
	int64_t from = tell(b, b->job, "job.queued", 2 * WEBHOOK_EVENTS_MAX + 7), want = from;
	size_t sizes[3];

	for (size_t i = 0; i < 3; i++) {
		webhook_batch(&all, s, want, &batch);
		sizes[i] = batch.n;
		for (size_t k = 0; k < batch.n; k++)
			assert_int_equal(batch.events[k]->seq, want + (int64_t)k);
		want = batch.next;
	}
	assert_int_equal(sizes[0], WEBHOOK_EVENTS_MAX);
	assert_int_equal(sizes[1], WEBHOOK_EVENTS_MAX);
	assert_int_equal(sizes[2], 7);
	assert_int_equal(want, s->next_event_seq);
}

static void what_left_the_ring_is_counted(void **state)
{
	struct bed *b = *state;
	const struct state *s = core_state(b->core);
	struct webhook all = { 0 };
	struct webhook_batch batch;
	int64_t from = tell(b, b->job, "job.queued", MO_EVENTS_MAX + 100);

	webhook_batch(&all, s, from, &batch);
	assert_int_equal(batch.n, WEBHOOK_EVENTS_MAX);
	assert_true(batch.missed >= 100);
	assert_int_equal(batch.missed + (int64_t)s->n_events, s->next_event_seq - from);
}

static void answers_are_judged(void **state)
{
	static const struct {
		int64_t status;
		enum webhook_result result;
	} rows[] = {
		{ 200, WEBHOOK_DELIVERED }, { 204, WEBHOOK_DELIVERED }, { 400, WEBHOOK_REFUSED },
		{ 413, WEBHOOK_REFUSED },   { 415, WEBHOOK_REFUSED },   { 422, WEBHOOK_REFUSED },
		{ 100, WEBHOOK_FAILED },    { 302, WEBHOOK_FAILED },    { 401, WEBHOOK_FAILED },
		{ 404, WEBHOOK_FAILED },    { 429, WEBHOOK_FAILED },    { 500, WEBHOOK_FAILED },
		{ 503, WEBHOOK_FAILED },    { 0, WEBHOOK_FAILED },      { MO_NONE, WEBHOOK_FAILED },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		assert_int_equal(webhook_judge(rows[i].status), rows[i].result);
}

static void it_is_tried_again_ever_later_and_forever(void **state)
{
	static const int64_t waits[] = { 5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900 };
	struct webhook_pace p = { .next = 7 };
	int64_t now = 0;

	for (size_t i = 0; i < ELEMENTSOF(waits); i++) {
		webhook_ended(&p, WEBHOOK_FAILED, 9, now);
		assert_int_equal(p.next, 7);
		assert_int_equal(p.due - now, waits[i] * S);
		now = p.due;
	}
	p.failures = INT64_MAX - 1; /* however long it lasts */
	webhook_ended(&p, WEBHOOK_FAILED, 9, now);
	assert_int_equal(p.due - now, 900 * S);
	webhook_ended(&p, WEBHOOK_DELIVERED, 9, now);
	assert_int_equal(p.next, 9);
	assert_int_equal(p.failures, 0);
	assert_int_equal(p.due, now + S);
	/* what it will never take keeps nothing back */
	webhook_ended(&p, WEBHOOK_REFUSED, 12, now);
	assert_int_equal(p.next, 12);
	assert_int_equal(p.failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_what_it_asks_for, setup, teardown),
		cmocka_unit_test_setup_teardown(many_go_in_portions_without_gap_or_repeat, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_left_the_ring_is_counted, setup, teardown),
		cmocka_unit_test(answers_are_judged),
		cmocka_unit_test(it_is_tried_again_ever_later_and_forever),
	};

	return cmocka_run_group_tests_name("dcore/webhook", tests, NULL, NULL);
}
