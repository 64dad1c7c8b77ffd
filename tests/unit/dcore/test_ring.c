/* The ring of events is shared: one user's many push out his own, not those of others, of operators
 * and of nodes; and how many went is known of all, of each job and of each node. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/update/ring.h"
#include "lib/model/limits.h"

struct bed {
	struct core *core;
	struct core_out out;
	int64_t now;
};

static void step(struct bed *b, struct core_input *e)
{
	core_out_done(&b->out);
	core_turn(b->core, e, b->now += 1000, &b->out);
}

static int setup(void **state)
{
	struct bed *b = *state = mo_alloc(sizeof(*b));

	b->core = core_new(&core_config_default);
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	core_out_done(&b->out);
	core_free(b->core);
	free(b);
	return 0;
}

static int64_t submit(struct bed *b, const char *user)
{
	struct submit spec;
	int64_t id = MO_NONE;

	world_recipe(&spec, 8);
	mo_str_set(&spec.user, user);
	step(b, &(struct core_input){ .type = IN_SUBMIT, .request = 1, .submit = &spec });
	for (size_t i = 0; i < b->out.n_effects; i++)
		if (b->out.effects[i].type == FX_REPLY)
			id = b->out.effects[i].job;
	mo_desc_done(&submit_desc, &spec);
	return id;
}

/* So many events of this job, or of none: as they come from the store, or from a turn. */
static void tell(struct bed *b, int64_t job, int64_t n)
{
	while (n-- > 0) {
		struct record r;

		record_init(&r, REC_EVENT);
		r.time = ++b->now;
		r.event = mo_desc_new(&event_desc);
		r.event->seq = core_state(b->core)->next_event_seq;
		r.event->job = job;
		r.event->type = mo_strdup(job == MO_NONE ? "audit.drained" : "job.submitted");
		assert_int_equal(core_update(b->core, &r), 0);
		mo_desc_done(&record_desc, &r);
	}
}

static size_t of_user(const struct bed *b, const char *user)
{
	const struct state *s = core_state(b->core);
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		const struct job *j = job_find(s, s->events[i].job);

		n += user ? j && mo_streq(j->spec.user, user) : s->events[i].job == MO_NONE;
	}
	return n;
}

static void one_user_pushes_out_his_own_events_only(void **state)
{
	struct bed *b = *state;
	const struct state *s = core_state(b->core);

	tell(b, MO_NONE, 40);
	int64_t hers = submit(b, "ann");
	size_t of_ann = of_user(b, "ann");
	tell(b, submit(b, "vic"), 5 * MO_EVENTS_MAX);
	assert_in_range(s->n_events, MO_EVENTS_MAX / 2, MO_EVENTS_MAX);
	assert_int_equal(of_user(b, NULL), 40);
	assert_int_equal(of_user(b, "ann"), of_ann);
	assert_int_equal(job_find(s, hers)->events_gone, MO_NONE);
	for (size_t i = 1; i < s->n_events; i++)
		assert_true(s->events[i - 1].seq < s->events[i].seq);
	/* of his, the newest are there without a hole */
	for (size_t i = s->n_events - 1000; i < s->n_events; i++)
		assert_int_equal(s->events[i].seq, s->next_event_seq - (int64_t)(s->n_events - i));
}

static void many_users_have_equal_parts_and_nodes_a_half(void **state)
{
	static const char *const users[] = { "a", "b", "c", "d" };
	struct bed *b = *state;
	int64_t jobs[ELEMENTSOF(users)];

	tell(b, submit(b, "small"), 300);
	for (size_t i = 0; i < ELEMENTSOF(users); i++)
		jobs[i] = submit(b, users[i]);
	for (int64_t round = 0; round < 60; round++) {
		for (size_t i = 0; i < ELEMENTSOF(users); i++)
			tell(b, jobs[i], 150 + 100 * (int64_t)i);
		tell(b, MO_NONE, 100);
	}
	assert_in_range(of_user(b, "small"), 300, 310);
	/* what they had when the ring was last full, and what came since */
	assert_in_range(of_user(b, NULL), MO_EVENTS_MAX * 7 / 16, MO_EVENTS_MAX * 9 / 16);
	for (size_t i = 0; i < ELEMENTSOF(users); i++)
		assert_in_range(of_user(b, users[i]), MO_EVENTS_MAX / 10, MO_EVENTS_MAX / 5);
}

static void without_jobs_the_ring_is_theirs(void **state)
{
	struct bed *b = *state;

	tell(b, MO_NONE, 3 * MO_EVENTS_MAX);
	assert_in_range(core_state(b->core)->n_events, MO_EVENTS_MAX * 7 / 8, MO_EVENTS_MAX);
}

static void what_went_is_counted(void **state)
{
	struct bed *b = *state;
	const struct state *s = core_state(b->core);
	int64_t first = submit(b, "vic"), gone = 0;

	assert_int_equal(ring_gone(s, 0), 0);
	tell(b, first, MO_EVENTS_MAX);
	tell(b, submit(b, "vic"), MO_EVENTS_MAX);
	assert_true(job_find(s, first)->events_gone > 0);
	for (size_t i = 0; i < s->n_jobs; i++)
		gone += MO_MAX(s->jobs[i]->events_gone, 0);
	assert_int_equal(gone, s->next_event_seq - 1 - (int64_t)s->n_events);
	assert_int_equal(ring_gone(s, 0), gone);
	assert_int_equal(ring_gone(s, s->next_event_seq - 1), 0);
	assert_int_equal(ring_gone(s, s->next_event_seq + 100), 0);
	assert_int_equal(ring_gone(s, s->events[0].seq - 1), 0); /* one user: one piece */
	assert_int_equal(ring_find(s, 0), 0);
	assert_int_equal(ring_find(s, s->events[7].seq), 7);
	assert_int_equal(ring_find(s, s->next_event_seq), s->n_events);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(one_user_pushes_out_his_own_events_only),
		T(many_users_have_equal_parts_and_nodes_a_half),
		T(without_jobs_the_ring_is_theirs),
		T(what_went_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
