/* Findings of agents: stored, reported at a limited rate, cordons and their cap, what an operator
 * decides, and what a node shows. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/state/health.h"
#include "daemon/core/state/lemon.h"
#include "daemon/core/view/why_node.h"
#include "daemon/core/view/view_node.h"
#include "daemon/core/view/why_view.h"

/* As every view shows it; NULL = it takes work. */
static const char *reason_of(const struct world *w)
{
	static char *last;

	free(last);
	last = node_reason(core_state(w->core), world_node(w, 0));
	return last;
}

static void a_word_is_kept_once(void **state)
{
	struct world w;
	int64_t records;

	world_init_telling(&w, 1, 4);
	assert_int_equal(w.toys[0].health_acked, 1);
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_OK);
	records = w.n_records;
	w.toys[0].health->version++; /* nothing else changed */
	world_run(&w, S);
	assert_int_equal(w.n_records, records);
	assert_int_equal(w.toys[0].health_acked, 2);
	world_finding(&w, 0, "gpu.pcie_replay", CHECK_WARN, ACTION_WARN);
	world_run(&w, S);
	assert_true(w.n_records > records);
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_WARN);
	assert_int_equal(world_events(&w, "health.warn"), 1);
	world_finding(&w, 0, "gpu.pcie_replay", CHECK_UNKNOWN, ACTION_CORDON);
	world_run(&w, S);
	world_finding(&w, 0, "gpu.pcie_replay", CHECK_OK, 0);
	world_run(&w, S);
	assert_int_equal(world_events(&w, "health.unknown"), 1);
	assert_int_equal(world_events(&w, "health.ok"), 1);
	assert_false(world_node(&w, 0)->drain.asked); /* WARN and UNKNOWN drain nothing */
	world_finding(&w, 0, "gpu.spinning", CHECK_CRIT, ACTION_REPORT);
	world_run(&w, S);
	assert_int_equal(world_events(&w, "health.crit"), 0); /* only shown */
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_CRIT);
	world_crash(&w);
	world_beat(&w, 0);
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_CRIT);
	w.toys[0].health_acked = w.toys[0].health->version;
	world_reboot(&w, 0);
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){
						     .message = &(struct agent_sync){
							     .node = w.toys[0].name,
							     .boot_id = w.toys[0].boot,
							     .instance = w.toys[0].instance,
							     .epoch = core_state(w.core)->epoch,
							     .beat = ++w.toys[0].beat } } });
	assert_int_equal(health_worst(world_node(&w, 0)), -1); /* that was another boot */
	world_run(&w, S);
	/* sent again, because it is not acknowledged */
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_CRIT);
	world_done(&w);
}

/* Urgent messages and syncs overtake each other: what an agent said before does not undo what it
 * said since. */
static void an_older_word_undoes_nothing(void **state)
{
	struct world w;

	world_init_telling(&w, 1, 4);
	world_finding(&w, 0, "gpu.pcie_replay", CHECK_WARN, ACTION_WARN);
	world_run(&w, S);
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_WARN);
	world_finding(&w, 0, "gpu.pcie_replay", CHECK_OK, 0);
	w.toys[0].health->version = 1;
	w.toys[0].health_acked = MO_NONE;
	world_run(&w, S);
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_WARN);
	w.toys[0].health->version = 9;
	world_run(&w, S);
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_OK);
	world_done(&w);
}

static void a_flapping_check_fills_nothing(void **state)
{
	struct world w;
	int64_t records;

	world_init_telling(&w, 2, 4);
	records = w.n_records;
	for (int i = 0; i < 600; i++) { /* five minutes */
		world_finding(&w, 0, "nic.state", i % 2 ? CHECK_OK : CHECK_WARN, ACTION_WARN);
		world_run(&w, S / 2);
	}
	assert_true(world_events(&w, "health.warn") + world_events(&w, "health.ok") <= 10 + 5 + 1);
	assert_true(w.n_records - records < 120);
	assert_true(core_health_muted(w.core) > 0);
	/* another node is heard all the same */
	world_finding(&w, 1, "nic.state", CHECK_WARN, ACTION_WARN);
	records = (int64_t)world_events(&w, "health.warn");
	world_run(&w, S);
	assert_int_equal(world_events(&w, "health.warn"), records + 1);
	/* in the end the newest word is known */
	world_finding(&w, 0, "nic.state", CHECK_CRIT, ACTION_WARN);
	world_run(&w, 20 * S);
	assert_int_equal(health_worst(world_node(&w, 0)), CHECK_CRIT);
	world_done(&w);
}

static void many_findings_at_once_say_how_many_more(void **state)
{
	struct world w;
	const struct event *last;
	size_t reported = 0;

	world_init_telling(&w, 1, 4);
	for (int i = 0; i < 19; i++) {
		char check[32];

		snprintf(check, sizeof(check), "gpu.check_%d", i);
		world_finding(&w, 0, check, i == 18 ? CHECK_CRIT : CHECK_WARN, ACTION_WARN);
	}
	world_run(&w, S);
	last = core_state(w.core)->events;
	for (size_t i = 0; i < core_state(w.core)->n_events; i++) {
		const struct event *e = &core_state(w.core)->events[i];

		if (!mo_starts_with(e->type, "health."))
			continue;
		if (reported++ == 0)
			/* the worst first, although it was reported last */
			assert_string_equal(e->type, "health.crit");
		last = e;
	}
	assert_int_equal(reported, 10);
	assert_non_null(strstr(last->message, "; and 9 more: moectl node "));
	assert_non_null(strstr(last->data, "\"more\":9"));
	assert_int_equal(core_health_muted(w.core), 9);
	world_finding(&w, 0, "gpu.check_0", CHECK_CRIT, ACTION_WARN);
	world_finding(&w, 0, "gpu.check_1", CHECK_CRIT, ACTION_WARN);
	world_run(&w, 2 * S);
	assert_int_equal(world_events(&w, "health.crit"), 1); /* no room */
	assert_int_equal(world_events(&w, "health.more"), 0);
	/* one a minute comes back, and does not speak of the 9 again */
	world_run(&w, 61 * S);
	assert_int_equal(world_events(&w, "health.more"), 1);
	last = &core_state(w.core)->events[core_state(w.core)->n_events - 1];
	assert_non_null(strstr(last->message, ": 2 more changes of findings: moectl node "));
	assert_int_equal(core_health_muted(w.core), 11);
	world_done(&w);
}

static void a_finding_cordons_and_kills_nothing(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 2, 4);
	id = world_submit_gpus(&w, 4);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	assert_true(world_node(&w, 0)->drain.asked);
	assert_string_equal(world_node(&w, 0)->drain.when, "idle");
	assert_string_equal(reason_of(&w), "gpu.ras_ue 0000:9f:00.0: 2 uncorrectable errors");
	world_iteration(&w, 0, id, 1);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_int_equal(world_count(&w, 0, CMD_STOP) + world_count(&w, 0, CMD_KILL), 0);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_OK, 0);
	world_run(&w, 5 * S);
	assert_true(world_node(&w, 0)->drain.asked); /* only a person lifts it */
	world_done(&w);
}

static void the_cap_holds(void **state)
{
	struct world w;

	world_init_telling(&w, 20, 1);
	for (size_t i = 0; i < 6; i++)
		world_finding(&w, i, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, 3 * S);
	assert_int_equal(world_cordoned(&w), 2);
	assert_int_equal(world_events(&w, "health.cordon_capped"), 4);
	world_crash(&w);
	world_run(&w, 3 * S);
	assert_int_equal(world_cordoned(&w), 2);
	world_node_verb(&w, IN_DRAIN, 5, "idle"); /* a person may drain as many as he likes */
	assert_int_equal(world_cordoned(&w), 2);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	assert_false(world_node(&w, 0)->drain.asked);
	assert_int_equal(world_cordoned(&w), 2); /* the next one */
	assert_true(world_node(&w, 2)->drain.asked);
	world_done(&w);
}

static void hardware(struct world *w, size_t toy)
{
	struct node_health *h = w->toys[toy].health;

	world_finding(w, toy, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	for (size_t i = 0; i < h->n_results; i++)
		h->results[i].hardware = mo_streq(h->results[i].check, "gpu.ras_ue");
}

/* What a program can cause, or a log line says, takes none of the room of what is broken. */
static void soft_findings_use_up_no_room_of_hardware(void **state)
{
	struct world w;

	world_init_telling(&w, 20, 1);
	for (size_t i = 0; i < 6; i++)
		world_finding(&w, i, "klog.gpu-reset", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, 3 * S);
	/* and they cannot take the cluster either */
	assert_int_equal(world_cordoned(&w), 2);
	for (size_t i = 10; i < 14; i++)
		hardware(&w, i);
	world_run(&w, 3 * S);
	assert_int_equal(world_cordoned(&w), 4);
	assert_true(world_node(&w, 10)->drain.hardware && world_node(&w, 11)->drain.hardware);
	assert_false(world_node(&w, 12)->drain.asked || world_node(&w, 13)->drain.asked);
	world_crash(&w);
	world_run(&w, 3 * S);
	assert_int_equal(world_cordoned(&w), 4);
	/* both: the proof is what it is cordoned for */
	hardware(&w, 5);
	world_node_verb(&w, IN_UNDRAIN, 10, NULL);
	assert_int_equal(world_cordoned(&w), 4);
	assert_true(world_node(&w, 12)->drain.asked);
	world_done(&w);
}

static void one_of_few_is_cordoned(void **state)
{
	struct world w;

	world_init_telling(&w, 3, 1);
	for (size_t i = 0; i < 3; i++)
		world_finding(&w, i, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	assert_int_equal(world_cordoned(&w), 1);
	world_done(&w);
}

static void an_undrain_wins(void **state)
{
	struct world w;

	world_init_telling(&w, 2, 4);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	/* another word with the same finding */
	world_finding(&w, 0, "nic.state", CHECK_WARN, ACTION_WARN);
	world_run(&w, S);
	assert_false(world_node(&w, 0)->drain.asked);
	world_crash(&w);
	world_run(&w, S);
	assert_false(world_node(&w, 0)->drain.asked);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_UNKNOWN, ACTION_CORDON); /* not OK in between */
	world_run(&w, S);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	assert_false(world_node(&w, 0)->drain.asked);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_OK, 0);
	world_run(&w, S);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	assert_true(world_node(&w, 0)->drain.asked);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_reboot(&w, 0);
	world_run(&w, S);
	assert_true(world_node(&w, 0)->drain.asked); /* found in another boot */
	world_done(&w);
}

static void counts(struct world *w, int64_t count)
{
	struct node_health *h = w->toys[0].health;

	world_finding(w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	for (size_t i = 0; i < h->n_results; i++)
		if (mo_streq(h->results[i].check, "gpu.ras_ue"))
			h->results[i].count = count;
	world_run(w, S);
}

/* The waiver is for what a person saw. */
static void more_errors_after_an_undrain_cordon_again(void **state)
{
	struct world w;

	world_init_telling(&w, 2, 4);
	counts(&w, 2);
	assert_true(world_node(&w, 0)->drain.asked);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	counts(&w, 2);
	world_crash(&w);
	world_run(&w, S);
	assert_false(world_node(&w, 0)->drain.asked);
	counts(&w, 3);
	assert_true(world_node(&w, 0)->drain.asked);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	counts(&w, 3);
	assert_false(world_node(&w, 0)->drain.asked);
	assert_int_equal(world_node(&w, 0)->findings.n_waived, 1);
	counts(&w, 1); /* the GPU was reset, and it happened again */
	assert_true(world_node(&w, 0)->drain.asked);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	counts(&w, MO_NONE); /* an agent of an earlier version */
	assert_false(world_node(&w, 0)->drain.asked);
	world_done(&w);
}

static void add_incident(struct job *j, const char *node, const char *class, const char *cause,
			 int64_t time)
{
	struct incident *inc = MO_ADD(j, incidents, &incident_desc);

	inc->node = mo_strdup(node);
	inc->class = mo_strdup(class);
	inc->cause = mo_strdup(cause);
	inc->time = time;
	inc->attempt = (int64_t)j->n_incidents;
}

static void nodes_that_fail_more_often_show_it(void **state)
{
	const int64_t now = 100 * LEMON_HALF_US;
	struct node_failure *f = NULL;
	double scores[3];
	size_t n = 0;
	struct state s;

	mo_desc_init(&state_desc, &s);
	for (int i = 0; i < 3; i++)
		MO_INSERT(&s, nodes, s.n_nodes, &node_desc)->name = mo_printf("n%d", i);
	for (int i = 0; i < 2; i++)
		MO_INSERT(&s, jobs, s.n_jobs, &job_desc)->id = i + 1;
	add_incident(s.jobs[0], "n0", "node_fault", "node-lost", now);
	add_incident(s.jobs[1], "n0", "transient", "signal 7 SIGBUS", now - LEMON_HALF_US);
	add_incident(s.jobs[1], "n0", "user_error", "exit code 1", now);
	add_incident(s.jobs[1], "n1", "transient", "signal 11 SIGSEGV", now);
	/* wherever it runs: the job's own */
	add_incident(s.jobs[1], "n2", "transient", "signal 11 SIGSEGV", now);
	add_incident(s.jobs[1], NULL, "transient", "exit-wait", now);
	lemon_scores(&s, now, scores);
	assert_true(scores[0] > 1.249 && scores[0] < 1.251);
	assert_true(scores[1] == 0 && scores[2] == 0);
	assert_true(lemon_of(&s, s.nodes[0], now, &f, &n) == scores[0]);
	assert_int_equal(n, 3);
	/* the oldest first, with what it counts */
	assert_string_equal(f[0].cause, "signal 7 SIGBUS");
	assert_int_equal(f[0].job, 2);
	assert_true(f[0].weight == 0.5 && f[1].weight + f[2].weight == 1);
	mo_vec_clear(&node_failure_desc, (void **)&f, &n);
	for (int i = 0; i < 30; i++)
		add_incident(s.jobs[0], "n1", "node_fault", "node-lost", now - i);
	assert_true(lemon_of(&s, s.nodes[1], now, &f, &n) > 29.9);
	assert_int_equal(n, LEMON_SHOWN);
	mo_vec_clear(&node_failure_desc, (void **)&f, &n);
	mo_desc_done(&state_desc, &s);
}

static void sensors_vanish(void **state)
{
	struct world w;
	size_t n;

	world_init_telling(&w, 1, 4);
	mo_desc_init(&gpu_sensors_desc, MO_GROW(w.toys[0].sensors, w.toys[0].n_sensors));
	w.toys[0].sensors[0].slot = 0;
	w.toys[0].sensors[0].temp_c = 71;
	world_beat(&w, 0);
	assert_true(core_sensors(w.core, "n0", w.now, &n)->temp_c == 71);
	assert_int_equal(n, 1);
	world_run(&w, 3 * S);
	/* a sync tells what was read since the last one: the others stay as they were */
	w.toys[0].sensors[0].slot = 1;
	world_beat(&w, 0);
	assert_non_null(core_sensors(w.core, "n0", w.now, &n));
	assert_int_equal(n, 2);
	world_run(&w, 31 * S); /* slot 0 is not read any more */
	assert_int_equal(core_sensors(w.core, "n0", w.now, &n)->slot, 1);
	assert_int_equal(n, 1);
	world_tick(&w, 31 * S);
	assert_null(core_sensors(w.core, "n0", w.now, &n));
	free(w.toys[0].sensors);
	w.toys[0].sensors = NULL;
	w.toys[0].n_sensors = 0;
	world_done(&w);
}

/* A full disk: when there is room again, more than what warns, the cordon ends by itself, and
 * cordons anew when it fills again. What else was found keeps the node away. */
static void room_on_a_disk_ends_its_cordon(void **state)
{
	struct world w;

	world_init_telling(&w, 3, 4);
	for (int round = 0; round < 2; round++) {
		world_finding(&w, 0, "host.disk", CHECK_CRIT, ACTION_CORDON);
		world_run(&w, 20 * S);
		assert_int_equal(world_cordoned(&w), 1);
		world_finding(&w, 0, "host.disk", CHECK_WARN, ACTION_CORDON);
		world_run(&w, 20 * S);
		assert_int_equal(world_cordoned(&w), 1);
		world_finding(&w, 0, "host.disk", CHECK_OK, ACTION_CORDON);
		world_run(&w, 20 * S);
		assert_int_equal(world_cordoned(&w), 0);
		assert_int_equal(world_events(&w, "node.undrained"), round + 1);
	}
	world_finding(&w, 0, "host.disk", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, 20 * S);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_finding(&w, 0, "host.disk", CHECK_OK, ACTION_CORDON);
	world_run(&w, 20 * S);
	assert_int_equal(world_cordoned(&w), 1);
	assert_non_null(strstr(world_node(&w, 0)->drain.reason, "gpu.ras_ue"));
	world_finding(&w, 0, "gpu.ras_ue", CHECK_OK, ACTION_CORDON);
	world_run(&w, 20 * S);
	assert_int_equal(world_cordoned(&w), 1); /* that one is a person's */
	world_done(&w);
}

/* Nor does an operator's drain. */
static void room_on_a_disk_ends_no_drain(void **state)
{
	struct world w;

	world_init_telling(&w, 2, 4);
	world_finding(&w, 0, "host.disk", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, 20 * S);
	world_node_verb(&w, IN_DRAIN, 0, "idle");
	world_finding(&w, 0, "host.disk", CHECK_OK, ACTION_CORDON);
	world_run(&w, 20 * S);
	assert_true(world_node(&w, 0)->drain.asked);
	world_done(&w);
}

static void a_node_shows_it(void **state)
{
	struct world w;
	struct node_view v;
	struct why_view why;

	world_init_telling(&w, 2, 4);
	world_finding(&w, 0, "gpu.ras_ue", CHECK_CRIT, ACTION_CORDON);
	world_run(&w, S);
	mo_desc_init(&node_view_desc, &v);
	node_view(core_state(w.core), world_node(&w, 0), w.now, true, &v);
	assert_int_equal(v.health, CHECK_CRIT);
	assert_int_equal(v.findings, 1);
	assert_int_equal(v.checks_ok, 20);
	assert_true(v.cordoned);
	assert_string_equal(v.checks[4].check, "gpu.ras_ue");
	assert_string_equal(v.checks[4].object, "0000:9f:00.0");
	assert_string_equal(v.checks[4].state, "crit");
	mo_desc_done(&node_view_desc, &v);
	mo_desc_init(&why_view_desc, &why);
	node_why(core_state(w.core), world_node(&w, 0), w.now, &why);
	assert_string_equal(why.reasons[0].code, "cordoned");
	assert_string_equal(why.reasons[1].text, "gpu.ras_ue 0000:9f:00.0: 2 uncorrectable errors");
	mo_desc_done(&why_view_desc, &why);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_is_kept_once),
		cmocka_unit_test(an_older_word_undoes_nothing),
		cmocka_unit_test(a_flapping_check_fills_nothing),
		cmocka_unit_test(many_findings_at_once_say_how_many_more),
		cmocka_unit_test(a_finding_cordons_and_kills_nothing),
		cmocka_unit_test(the_cap_holds),
		cmocka_unit_test(soft_findings_use_up_no_room_of_hardware),
		cmocka_unit_test(one_of_few_is_cordoned),
		cmocka_unit_test(an_undrain_wins),
		cmocka_unit_test(more_errors_after_an_undrain_cordon_again),
		cmocka_unit_test(nodes_that_fail_more_often_show_it),
		cmocka_unit_test(sensors_vanish),
		cmocka_unit_test(room_on_a_disk_ends_its_cordon),
		cmocka_unit_test(room_on_a_disk_ends_no_drain),
		cmocka_unit_test(a_node_shows_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
