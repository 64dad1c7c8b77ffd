/* The first days of a node: checks that never met real hardware are reported and do nothing else
 * (health.learn). */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/state/health.h"
#include "daemon/core/view/why_node.h"
#include "daemon/core/view/view_node.h"
#include "daemon/core/view/why_view.h"

#define DAY (86400LL * S)

static void unproven(struct world *w, size_t toy, const char *check, bool hardware)
{
	struct node_health *h = w->toys[toy].health;

	world_finding(w, toy, check, CHECK_CRIT, ACTION_CORDON);
	for (size_t i = 0; i < h->n_results; i++)
		if (mo_streq(h->results[i].check, check)) {
			h->results[i].unproven = true;
			h->results[i].hardware = hardware;
		}
	world_run(w, S);
}

static void a_new_node_is_reported_and_not_cordoned(void **state)
{
	struct node_view v;
	struct why_view why;
	struct world w;
	int64_t id;

	world_init_telling(&w, 1, 4);
	assert_int_equal(world_node(&w, 0)->findings.learn_until,
			 world_node(&w, 0)->registered_at + 7 * DAY);
	unproven(&w, 0, "gpu.ras_ue", true);
	assert_false(world_node(&w, 0)->drain.asked);
	assert_int_equal(world_events(&w, "health.crit"), 1);
	assert_int_equal(world_events(&w, "health.would_cordon"), 1);
	world_run(&w, 5 * S);
	assert_int_equal(world_events(&w, "health.would_cordon"), 1);
	mo_desc_init(&node_view_desc, &v);
	node_view(core_state(w.core), world_node(&w, 0), w.now, true, &v);
	assert_non_null(strstr(v.would_cordon, "gpu.ras_ue 0000:9f:00.0: 2 uncorrectable errors"));
	assert_string_equal(v.reason, v.would_cordon);
	assert_non_null(strstr(v.would_next, "moectl ack n0"));
	assert_null(v.refuses);
	mo_desc_done(&node_view_desc, &v);
	mo_desc_init(&why_view_desc, &why);
	node_why(core_state(w.core), world_node(&w, 0), w.now, &why);
	assert_string_equal(why.reasons[0].code, "learning");
	assert_non_null(strstr(why.next, "moectl ack n0"));
	mo_desc_done(&why_view_desc, &why);
	/* nor does it keep jobs away: else a new cluster would take none */
	id = world_submit_gpus(&w, 4);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_finding(&w, 0, "host.disk", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	assert_true(world_node(&w, 0)->drain.asked); /* a proven check */
	world_done(&w);
}

/* The clock of a test jumps; nodes beat on. */
static void days(struct world *w, int64_t n)
{
	world_tick(w, n * DAY);
	world_run(w, 5 * S);
}

static void time_ends_it(void **state)
{
	struct world w;

	world_init_telling(&w, 1, 4);
	unproven(&w, 0, "gpu.hot", false);
	days(&w, 6);
	assert_false(world_node(&w, 0)->drain.asked);
	world_crash(&w);
	world_run(&w, 5 * S);
	assert_false(world_node(&w, 0)->drain.asked);
	days(&w, 1);
	assert_true(world_node(&w, 0)->drain.asked);
	assert_int_equal(world_events(&w, "health.learned"), 1);
	assert_int_equal(world_node(&w, 0)->findings.learn_until, MO_NONE);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_finding(&w, 0, "gpu.hot", CHECK_OK, 0);
	world_run(&w, S);
	world_reboot(&w, 0); /* comes back: it is not new again */
	world_run(&w, S);
	unproven(&w, 0, "gpu.hot", false);
	assert_true(world_node(&w, 0)->drain.asked);
	world_done(&w);
}

static int ack(struct world *w, const char *check)
{
	world_step(w, &(struct core_input){ .type = IN_ACK,
					    .request = 7,
					    .by = { .user = (char *)"ada", .may_all = true },
					    .ack = &(struct in_ack){ .node = w->toys[0].name,
								     .check = (char *)check,
								     .learned = !check } });
	return w->reply_status;
}

static void a_person_ends_it(void **state)
{
	struct world w;

	world_init_telling(&w, 1, 4);
	unproven(&w, 0, "gpu.ras_ue", true);
	assert_int_equal(ack(&w, NULL), 200);
	assert_true(world_node(&w, 0)->drain.asked && world_node(&w, 0)->drain.hardware);
	assert_int_equal(world_events(&w, "health.learned"), 1);
	assert_int_equal(ack(&w, NULL), 409);
	world_crash(&w);
	world_run(&w, S);
	assert_int_equal(world_node(&w, 0)->findings.learn_until, MO_NONE);
	world_done(&w);
}

static void what_is_known_cordons_no_more_afterwards(void **state)
{
	struct world w;

	world_init_telling(&w, 1, 4);
	unproven(&w, 0, "gpu.ras_ue", true);
	w.toys[0].health->results[w.toys[0].health->n_results - 1].since_boot = true;
	w.toys[0].health->version++;
	world_run(&w, S);
	assert_int_equal(ack(&w, "gpu.ras_ue"), 200);
	/* this one finding is known, no more was said */
	assert_int_not_equal(world_node(&w, 0)->findings.learn_until, MO_NONE);
	assert_int_equal(ack(&w, NULL), 200);
	assert_false(world_node(&w, 0)->drain.asked);
	world_done(&w);
}

/* The caps hold when the time of a whole cluster ends at once. */
static void a_cluster_that_ends_at_once_keeps_most_nodes(void **state)
{
	struct world w;

	world_init_telling(&w, 20, 1);
	for (size_t i = 0; i < 20; i++)
		unproven(&w, i, "gpu.hot", false);
	assert_int_equal(world_cordoned(&w), 0);
	days(&w, 7);
	assert_int_equal(world_cordoned(&w), 2);
	world_done(&w);
}

/* What 0.1 wrote when a node came says nothing of it: that node has had cordons all along. */
static void a_node_of_an_earlier_version_is_not_new(void **state)
{
	_cleanup_(core_freep) struct core *core = core_new(&core_config_default);
	struct record r;

	record_init(&r, REC_NODE);
	r.time = DAY;
	mo_str_set(&r.hello->said.node, "n0");
	mo_str_set(&r.hello->said.boot_id, "b-1");
	assert_int_equal(core_update(core, &r), 0);
	assert_int_equal(node_find((struct state *)core_state(core), "n0")->findings.learn_until,
			 MO_NONE);
	mo_desc_done(&record_desc, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_node_is_reported_and_not_cordoned),
		cmocka_unit_test(time_ends_it),
		cmocka_unit_test(a_person_ends_it),
		cmocka_unit_test(what_is_known_cordons_no_more_afterwards),
		cmocka_unit_test(a_cluster_that_ends_at_once_keeps_most_nodes),
		cmocka_unit_test(a_node_of_an_earlier_version_is_not_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
