/* Who may run a command beside a rank, and beside which. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/rules/exec.h"

/* The status of the answer. */
static int ask(struct world *w, int64_t job, int64_t rank, const char *user, bool admin)
{
	char *argv[] = { (char *)"tool", (char *)"--api-key", (char *)"verysecret" };

	world_step(w, &(struct core_input){ .type = IN_EXEC,
					    .request = 1,
					    .by = { .user = (char *)user, .via = (char *)"socket" },
					    .exec = &(struct in_exec){ .job = job,
								       .rank = rank,
								       .argv = argv,
								       .n_argv = ELEMENTSOF(argv),
								       .admin = admin } });
	return w->reply_status;
}

static void test_who_and_where(void **state)
{
	struct world w;

	world_init(&w, 2, 4);
	int64_t id = world_submit_running(&w, 8, 3);
	const char *owner = world_job(&w, id)->spec.user;

	assert_int_equal(ask(&w, id, 0, "eve", false), 403);
	assert_int_equal(ask(&w, id, 0, NULL, false), 403);
	assert_int_equal(ask(&w, id + 1, 0, owner, true), 404);
	assert_int_equal(ask(&w, id, 8, owner, false), 404);
	assert_int_equal(ask(&w, id, INT64_MAX, owner, false), 404);
	assert_false(world_event_seen(&w, "job.exec"));
	assert_int_equal(ask(&w, id, 7, owner, false), 202);
	assert_int_equal(ask(&w, id, 0, "ann", true), 202);
	assert_int_equal(world_events(&w, "job.exec"), 2);
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 300 * S);
	assert_int_equal(ask(&w, id, 0, owner, false), 409);
	world_done(&w);
}

static void test_event_has_no_secret(void **state)
{
	const struct state *s;
	struct world w;

	world_init(&w, 1, 4);
	int64_t id = world_submit_running(&w, 4, 3);
	assert_int_equal(ask(&w, id, 2, "ann", true), 202);
	s = core_state(w.core);
	const struct event *e = NULL;
	for (size_t i = 0; i < s->n_events; i++)
		if (mo_streq(s->events[i].type, "job.exec"))
			e = &s->events[i];
	assert_non_null(e);
	assert_int_equal(e->rank, 2);
	assert_null(strstr(e->message, "verysecret"));
	assert_null(strstr(e->data, "verysecret"));
	assert_non_null(strstr(e->data, "\"command\":\"tool --api-key ***\"}"));
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_and_where),
		cmocka_unit_test(test_event_has_no_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
