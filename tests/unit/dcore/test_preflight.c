/* Which nodes a job may use by their health: preflight, what was not probed, the same software
 * on all. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/view/stack_drift.h"
#include "daemon/core/view/why_node.h"
#include "daemon/core/view/why_view.h"

static int64_t submit_with(struct world *w, int64_t gpus, const char *preflight, const char *also)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, gpus);
	mo_strs_add(&spec.recipe.preflight, &spec.recipe.n_preflight, preflight);
	if (also)
		mo_strs_add(&spec.recipe.preflight, &spec.recipe.n_preflight, also);
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	return id;
}

static void an_agent_that_starts_again_says_nothing_is_ok(void **state)
{
	struct world w;

	world_init_telling(&w, 2, 4);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	w.toys[0].health->preflight_done = false; /* probed nothing yet */
	world_finding(&w, 0, "gpu.ras_ue", CHECK_OK, 0);
	snprintf(w.toys[0].instance, sizeof(w.toys[0].instance), "later");
	w.toys[0].beat = 0;
	world_hello(&w, 0);
	world_run(&w, S);
	assert_int_equal(world_events(&w, "health.ok"), 0);
	w.toys[0].health->preflight_done = true;
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	assert_false(world_node(&w, 0)->drain.asked);
	world_done(&w);
}

/* As every view shows it; NULL = it takes work. */
static const char *reason_of(const struct world *w)
{
	static char *last;

	free(last);
	last = node_reason(core_state(w->core), world_node(w, 0));
	return last;
}

static void preflight_keeps_jobs_away(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 2, 4);
	world_finding(&w, 0, "nic.state", CHECK_CRIT, ACTION_WARN);
	world_run(&w, S);
	id = submit_with(&w, 8, "standard", NULL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	world_why_has(&w, id,
		      "node n0 is not used: nic.state 0000:9f:00.0: 2 uncorrectable errors");
	world_finding(&w, 0, "nic.link", CHECK_CRIT, ACTION_WARN);
	world_finding(&w, 0, "gpu.hot", CHECK_WARN, ACTION_WARN);
	world_run(&w, S);
	world_why_has(&w, id,
		      "node n0 is not used: nic.state 0000:9f:00.0: 2 uncorrectable errors; and 1 "
		      "more: moectl node n0");
	world_verb(&w, IN_CANCEL, id);
	id = submit_with(&w, 8, "none", NULL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, S);
	id = submit_with(&w, 8, "gpu.ras_ue", "host.disk"); /* others do not count */
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, S);
	world_finding(&w, 1, "host.disk", CHECK_UNKNOWN, ACTION_WARN);
	world_run(&w, S);
	id = submit_with(&w, 8, "gpu.ras_ue", "host.disk");
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	world_why_has(&w, id, "node n1 is not used: host.disk");
	world_finding(&w, 1, "host.disk", CHECK_OK, 0);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

static void a_periodic_finding_keeps_nobody_away(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 1, 4);
	world_finding(&w, 0, "gpu.throttle_vr", CHECK_CRIT, ACTION_WARN);
	w.toys[0].health->results[0].when = WHEN_PERIODIC;
	world_run(&w, S);
	id = world_submit_gpus(&w, 4);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

static struct check_result *since_boot(struct world *w, int64_t count)
{
	struct node_health *h = w->toys[0].health;
	struct check_result *r;

	world_finding(w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	r = &h->results[h->n_results - 1];
	r->since_boot = r->hardware = true;
	r->count = count;
	world_run(w, S);
	return r;
}

static bool undrained_says(const struct world *w, const char *text)
{
	const struct event *last = NULL;

	for (size_t i = 0; i < core_state(w->core)->n_events; i++)
		if (mo_streq(core_state(w->core)->events[i].type, "node.undrained"))
			last = &core_state(w->core)->events[i];
	return last && strstr(last->message, text);
}

/* Undrained, and refused for ever all the same: said wherever somebody looks, with the command that
 * ends it. */
static void what_is_known_keeps_no_job_away(void **state)
{
	struct why_view why;
	struct world w;
	int64_t id;

	world_init_telling(&w, 1, 4);
	since_boot(&w, 2);
	id = submit_with(&w, 4, "standard", NULL);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_run(&w, S);
	assert_false(world_node(&w, 0)->drain.asked);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	assert_true(undrained_says(&w, "gets no work: gpu.ras_ue 0000:9f:00.0"));
	assert_true(undrained_says(&w, "'moectl ack n0 gpu.ras_ue'"));
	world_why_has(&w, id, "'moectl ack n0 gpu.ras_ue'");
	world_why_has(&w, id, "--set health.preflight=none");
	assert_non_null(strstr(reason_of(&w), "(since boot)"));
	mo_desc_init(&why_view_desc, &why);
	node_why(core_state(w.core), world_node(&w, 0), w.now, &why);
	assert_non_null(strstr(why.next, "'moectl ack n0 gpu.ras_ue'"));
	assert_non_null(strstr(why.next, "reboot"));
	mo_desc_done(&why_view_desc, &why);

	world_node_verb(&w, IN_ACK, 0, "gpu.hot");
	assert_int_equal(w.reply_status, 404);
	world_finding(&w, 0, "gpu.count", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	world_node_verb(&w, IN_ACK, 0, "gpu.count"); /* that is so now */
	assert_int_equal(w.reply_status, 409);
	assert_non_null(strstr(w.reply_text, "is so now"));
	world_finding(&w, 0, "gpu.count", CHECK_OK, 0);
	world_run(&w, S);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_node_verb(&w, IN_ACK, 0, "gpu.ras_ue");
	assert_int_equal(w.reply_status, 200);
	assert_int_equal(world_events(&w, "health.acked"), 1);
	world_node_verb(&w, IN_ACK, 0, "gpu.ras_ue"); /* twice is once */
	assert_int_equal(w.reply_status, 200);
	assert_int_equal(world_events(&w, "health.acked"), 1);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_null(reason_of(&w));
	world_crash(&w);
	world_run(&w, S);
	assert_null(reason_of(&w));
	since_boot(&w, 3); /* one more, which nobody knows of */
	assert_true(world_node(&w, 0)->drain.asked);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	assert_non_null(strstr(reason_of(&w), "gpu.ras_ue"));
	world_node_verb(&w, IN_ACK, 0, "gpu.ras_ue");
	assert_null(reason_of(&w));
	w.toys[0].health_acked = w.toys[0].health->version;
	world_reboot(&w, 0);
	world_run(&w, S);
	assert_int_equal(world_node(&w, 0)->findings.n_acked, 0); /* another boot */
	assert_non_null(reason_of(&w));
	world_done(&w);
}

static void what_was_not_looked_at_is_not_used(void **state)
{
	struct world w;
	int64_t id, fake;

	world_init(&w, 2, 4);
	world_tells(&w, 0);
	w.toys[0].health->preflight_done = false;
	w.toys[0].health->version++;
	world_run(&w, S);
	world_node_verb(&w, IN_DRAIN, 1, "idle");
	assert_non_null(strstr(reason_of(&w), "preflight checks are not done yet"));
	world_node_verb(&w, IN_DRAIN, 0, "idle");
	world_run(&w, S);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL); /* not silently */
	assert_non_null(strstr(reason_of(&w), "what they find may cordon it"));
	assert_non_null(strstr(core_state(w.core)->events[core_state(w.core)->n_events - 1].message,
			       "what they still find cordons it again"));
	id = world_submit_gpus(&w, 4);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	world_why_has(&w, id, "node n0 is not used: its preflight checks are not done yet");
	w.toys[0].health->preflight_done = true;
	w.toys[0].health->version++;
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_null(reason_of(&w));
	world_node_verb(&w, IN_UNDRAIN, 1, NULL);
	fake = world_submit_gpus(&w, 4); /* n1's agent tells nothing: an earlier version */
	world_run(&w, S);
	assert_int_equal(world_job(&w, fake)->state, JOB_RUNNING);
	world_done(&w);
}

static void stack_of(struct world *w, size_t toy, const char *kernel)
{
	struct node_health *h = w->toys[toy].health;

	mo_vec_clear(&stack_item_desc, (void **)&h->stack, &h->n_stack);
	for (int i = 0; i < 2; i++) {
		struct stack_item *item = MO_ADD(h, stack, &stack_item_desc);

		item->key = mo_strdup((i + toy) % 2 ? "kernel" : "rocm"); /* in whatever order */
		item->value = mo_strdup((i + toy) % 2 ? kernel : "7.0");
	}
	h->version++;
}

static void one_software_for_a_job(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 4, 2);
	stack_of(&w, 0, "6.8.0-40");
	for (size_t i = 1; i < 4; i++)
		stack_of(&w, i, "6.8.0-45");
	world_run(&w, S);
	id = submit_with(&w, 4, "stack.same", NULL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_null(place_of(world_job(&w, id), "n0"));
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, S);
	id = submit_with(&w, 8, "stack.same", NULL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	assert_non_null(strstr(world_job(&w, id)->reason, "only 6 of 8"));
	world_waits(&w, id, WAITING_STACK, world_job(&w, id)->reason, world_job(&w, id)->reason);
	world_why_has(&w, id, "kernel 6.8.0-45; n0 has 6.8.0-40");
	stack_of(&w, 0, "6.8.0-45");
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

static void add_stack_item(struct world *w, size_t toy, const char *key, const char *value)
{
	struct stack_item *item = MO_ADD(w->toys[toy].health, stack, &stack_item_desc);

	item->key = mo_strdup(key);
	item->value = mo_strdup(value);
	w->toys[toy].health->version++;
}

/* Agents are upgraded and configured one after the other while jobs go on; what they say of
 * themselves is drift, and no other software under a job. */
static void an_upgrade_of_agents_keeps_the_same_software(void **state)
{
	static const char *const own[] = { "agent", "config.probe_host", "health.checks",
					   "health.off", "env.profiles" };
	struct drift_view drift;
	struct world w;
	int64_t id;

	world_init_telling(&w, 2, 4);
	for (size_t i = 0; i < 2; i++)
		stack_of(&w, i, "6.8.0-45");
	for (size_t k = 0; k < ELEMENTSOF(own); k++) {
		add_stack_item(&w, 0, own[k], "1");
		if (k != 1)
			add_stack_item(&w, 1, own[k], "2");
	}
	world_run(&w, S);
	id = submit_with(&w, 8, "stack.same", NULL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	mo_desc_init(&drift_view_desc, &drift);
	stack_drift_view(core_state(w.core), &drift);
	assert_int_equal(drift.n_groups, 1);
	assert_int_equal(drift.groups[0].n_keys, ELEMENTSOF(own));
	mo_desc_done(&drift_view_desc, &drift);
	world_verb(&w, IN_CANCEL, id);
	/* what ranks get is not the agent's own */
	add_stack_item(&w, 1, "env.NCCL_IB_GID_INDEX", "5");
	world_run(&w, S);
	id = submit_with(&w, 8, "stack.same", NULL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	world_crash(&w);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_that_starts_again_says_nothing_is_ok),
		cmocka_unit_test(preflight_keeps_jobs_away),
		cmocka_unit_test(a_periodic_finding_keeps_nobody_away),
		cmocka_unit_test(what_is_known_keeps_no_job_away),
		cmocka_unit_test(what_was_not_looked_at_is_not_used),
		cmocka_unit_test(one_software_for_a_job),
		cmocka_unit_test(an_upgrade_of_agents_keeps_the_same_software),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
