/* What kind of failure it was and what follows: words of all ranks that ended, the kernel's word,
 * the table of remedies, and what a recipe says of it. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

#include "daemon/core/rules/remedy.h"
#include "lib/model/limits.h"

/* A job on so many nodes of two GPUs; 0: it has not trained yet. */
static int64_t job_on(struct world *w, size_t nodes, int64_t ranks, int64_t iterations)
{
	world_init_telling(w, nodes, 2);
	return world_submit_running(w, ranks, iterations);
}

static void says(struct world *w, size_t toy, int64_t id, const char *line)
{
	struct toy_step *s = world_toy_step(w, toy, id);

	mo_strs_add(&s->notes[s->n_notes - 1].tail, &s->notes[s->n_notes - 1].n_tail, line);
}

static const struct incident *newest(const struct world *w, int64_t id)
{
	const struct job *j = world_job(w, id);

	assert_true(j->n_incidents > 0);
	return &j->incidents[j->n_incidents - 1];
}

static bool has_line(const struct incident *inc, const char *text)
{
	for (size_t i = 0; i < inc->n_evidence; i++)
		if (strstr(inc->evidence[i], text))
			return true;
	return false;
}

/* Before the first iteration an exit is the user's error only where nothing else explains it. */
static void not_everything_at_the_start_is_the_users_error(void **state)
{
	static const struct {
		const char *line, *class, *rule;
		int state;
	} cases[] = {
		{ "HW Exception by GPU node-4 (Agent handle: 0x5) reason :GPU Hang", "node_fault",
		  "rocr-gpu-hang", JOB_RUNNING },
		{ "Memory access fault by GPU node-2. Reason: Page not present", "suspect",
		  "memory-fault", JOB_RUNNING },
		{ "torch.distributed.DistStoreError: Timed out after 601 seconds waiting",
		  "transient", "rendezvous", JOB_RUNNING },
		{ "OSError: [Errno 28] No space left on device", "storage", "no-space",
		  JOB_RUNNING },
		{ "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)",
		  "hang", "hang", JOB_RUNNING },
		{ "ModuleNotFoundError: No module named 'primus'", "user_error", "import",
		  JOB_FAILED },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct world w;
		int64_t id = job_on(&w, 1, 2, 0);

		world_exit(&w, 0, id, 1, 1, 0);
		says(&w, 0, id, cases[i].line);
		world_run(&w, 2 * S);
		assert_string_equal(newest(&w, id)->class, cases[i].class);
		assert_string_equal(newest(&w, id)->rule, cases[i].rule);
		assert_true(has_line(newest(&w, id), cases[i].line));
		assert_int_equal(world_job(&w, id)->state, cases[i].state);
		world_done(&w);
	}
}

/* Peers tell of the death, the rank that was killed by us with them had its own reason to end. */
static void words_about_a_peer_lose(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 2, 4, 5);

	world_exit(&w, 0, id, 0, 1, 0);
	says(&w, 0, id, "RuntimeError: [gloo] Connection closed by peer [10.0.0.1]:4711");
	world_exit(&w, 1, id, 3, 1, 0);
	says(&w, 1, id, "OSError: [Errno 5] Input/output error: '/ckpt/iter_5'");
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "storage");
	assert_int_equal(newest(&w, id)->first_rank, 3);
	assert_string_equal(newest(&w, id)->node, "n1");
	world_done(&w);
	id = job_on(&w, 2, 4, 5);
	world_exit(&w, 0, id, 0, 1, 0);
	says(&w, 0, id, "RuntimeError: Connection reset by peer");
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "collateral");
	world_done(&w);
}

/* A signal is a death of its own: what others say after it is its echo, but for broken hardware. */
static void a_signal_beats_words_of_others(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 2, 4, 5);

	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	world_exit(&w, 1, id, 3, 1, 0);
	says(&w, 1, id, "ncclSystemError: System call (e.g. socket, malloc) failed");
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "transient");
	assert_int_equal(newest(&w, id)->first_rank, 1);
	world_done(&w);
	id = job_on(&w, 2, 4, 5);
	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	world_exit(&w, 1, id, 3, MO_NONE, SIGABRT);
	says(&w, 1, id, "HW Exception by GPU node-3 (Agent handle: 0x5) reason :GPU Hang");
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "node_fault");
	assert_string_equal(newest(&w, id)->node, "n1");
	world_done(&w);
}

/* What was printed before the last iteration did not end the rank. */
static void what_was_survived_is_no_evidence(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, 2, 5);

	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	struct toy_step *s = world_toy_step(&w, 0, id);
	struct note *n = &s->notes[s->n_notes - 1];

	mo_strs_clear(&n->tail, &n->n_tail);
	mo_strs_add(&n->tail, &n->n_tail, "OSError: [Errno 28] No space left on device: '/tmp/x'");
	mo_strs_add(&n->tail, &n->n_tail, " iteration        4/  100 | loss: 2.1");
	mo_strs_add(&n->tail, &n->n_tail, " iteration        5/  100 | loss: 2.0");
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "transient");
	assert_null(newest(&w, id)->rule);
	assert_false(has_line(newest(&w, id), "Errno 28"));
	assert_false(has_line(newest(&w, id), "4/  100"));
	assert_true(has_line(newest(&w, id), "5/  100"));
	world_done(&w);
}

static size_t drained(const struct world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < core_state(w->core)->n_nodes; i++)
		n += core_state(w->core)->nodes[i]->drain.asked;
	return n;
}

/* The program's word about hardware moves the job; the kernel's takes the node out as well. */
static void only_what_is_proved_cordons(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 3, 2, 5);

	world_exit(&w, 0, id, 1, MO_NONE, SIGABRT);
	says(&w, 0, id, "HW Exception by GPU node-3 (Agent handle: 0x5) reason :GPU Hang");
	world_run(&w, 2 * S);
	assert_int_equal(drained(&w), 0);
	assert_true(newest(&w, id)->elsewhere);
	assert_string_not_equal(world_job(&w, id)->run.places[0].node, "n0");
	world_done(&w);
	id = job_on(&w, 3, 2, 5);
	world_finding(&w, 0, "klog.gpu-reset", CHECK_CRIT, ACTION_WARN);
	struct check_result *r = &w.toys[0].health->results[0];

	mo_strs_add(&r->evidence, &r->n_evidence,
		    "amdgpu 0000:9f:00.0: amdgpu: GPU reset begin! Source: 3");
	world_beat(&w, 0);
	world_exit(&w, 0, id, 1, MO_NONE, SIGABRT);
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "node_fault");
	assert_true(has_line(newest(&w, id), "n0: amdgpu 0000:9f:00.0: amdgpu: GPU reset begin"));
	assert_int_equal(drained(&w), 1);
	assert_true(world_node(&w, 0)->drain.asked);
	assert_string_not_equal(world_job(&w, id)->run.places[0].node, "n0");
	world_done(&w);
}

static void an_old_finding_is_not_near(void **state)
{
	struct world w;

	world_init_telling(&w, 2, 2);
	world_finding(&w, 0, "klog.gpu-reset", CHECK_WARN, ACTION_WARN);
	mo_strs_add(&w.toys[0].health->results[0].evidence,
		    &w.toys[0].health->results[0].n_evidence,
		    "amdgpu 0000:9f:00.0: amdgpu: GPU reset begin! Source: 3");
	int64_t id = world_submit_running(&w, 4, 5);

	world_run(&w, 300 * S);
	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "transient");
	assert_int_equal(drained(&w), 0);
	world_done(&w);
}

/* A program that says itself what is wrong with it cordons nothing. */
static void no_cordon_on_a_users_error(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, 2, 0);

	world_finding(&w, 0, "gpu.x", CHECK_CRIT, ACTION_WARN);
	w.toys[0].health->results[0].hardware = true;
	world_beat(&w, 0);
	world_exit(&w, 0, id, 1, 1, 0);
	says(&w, 0, id, "ModuleNotFoundError: No module named 'primus'");
	world_run(&w, 2 * S);
	assert_string_equal(newest(&w, id)->class, "user_error");
	assert_int_equal(drained(&w), 0);
	world_done(&w);
}

/* At most a tenth of the nodes, at least one. */
static void cordons_have_a_limit(void **state)
{
	struct world w;
	size_t n = 0;

	world_init_telling(&w, 8, 2);
	for (int i = 0; i < 3; i++) {
		int64_t id = world_submit_gpus(&w, 2);

		world_run(&w, S);
		size_t toy = (size_t)(world_job(&w, id)->run.places[0].node[1] - '0');

		world_finding(&w, toy, "klog.gpu-reset", CHECK_CRIT, ACTION_WARN);
		mo_strs_add(&w.toys[toy].health->results[0].evidence,
			    &w.toys[toy].health->results[0].n_evidence,
			    "amdgpu 0000:9f:00.0: amdgpu: GPU reset begin! Source: 3");
		world_beat(&w, toy);
		world_exit(&w, toy, id, 0, MO_NONE, SIGABRT);
		world_run(&w, 2 * S);
		assert_string_equal(newest(&w, id)->class, "node_fault");
		n++;
	}
	assert_int_equal(n, 3);
	assert_int_equal(drained(&w), 1);
	assert_true(world_event_seen(&w, "health.cordon_capped"));
	world_done(&w);
}

/* Storage holds the job as long as it takes. */
static void storage_burns_no_budget(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, 2, 5);

	for (int i = 0; i < 12; i++) {
		assert_int_equal(world_job(&w, id)->attempt, i + 1);
		world_exit(&w, 0, id, 1, 1, 0);
		says(&w, 0, id, "OSError: [Errno 28] No space left on device");
		world_run(&w, 2 * S);
		assert_int_equal(world_job(&w, id)->streak.same, 0);
		assert_int_equal(world_job(&w, id)->streak.cycles, 0);
	}
	assert_int_equal(world_job(&w, id)->attempt, 13);
	assert_true(strstr(newest(&w, id)->action, "restart"));
	world_done(&w);
}

/* recovery.policy of the recipe. */
static void the_recipe_says_otherwise(void **state)
{
	struct world w;
	struct submit spec;
	struct kv *pair;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	pair = MO_ADD(&spec.recipe, policy, &kv_desc);
	pair->key = mo_strdup("storage");
	pair->value = mo_strdup("stop");
	int64_t id = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	world_exit(&w, 0, id, 1, 1, 0);
	says(&w, 0, id, "OSError: [Errno 28] No space left on device");
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_non_null(
		strstr(world_job(&w, id)->reason, "storage stops the job (recovery.policy)"));
	world_done(&w);
}

static void why_tells_everything(void **state)
{
	struct world w;
	struct submit spec;

	world_init(&w, 2, 2);
	world_recipe(&spec, 4);
	spec.recipe.parallelism = (struct recipe_parallelism){
		.tp = 1, .pp = 2, .vpp = 1, .ep = 1, .etp = 1, .cp = 1, .dp = 2
	};
	int64_t id = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	w.toys[0].deaf = true; /* the attempt does not follow yet */
	world_exit(&w, 1, id, 3, 1, 0);
	says(&w, 1, id, "OSError: [Errno 28] No space left on device");
	world_run(&w, S);
	w.toys[0].deaf = false;
	world_run(&w, S / 2);
	world_why_has(&w, id, "rank 3 died first, pp 1, dp 1, GPU 1 of n1");
	world_why_has(&w, id, "storage, by signature no-space: the file system is full");
	world_why_has(&w, id, "OSError: [Errno 28] No space left on device");
	world_why_has(&w, id, "what was done: restart from the beginning as attempt 2");
	world_why_has(&w, id, "what to do: make room");
	world_done(&w);
}

/* A restart takes a moment, and people come hours later: while the next attempt runs it is told why
 * there was one, and no more when somebody has restarted the job since. */
static void why_tells_it_while_the_next_one_runs(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 2, 4, 5);

	world_exit(&w, 1, id, 3, 1, 0);
	says(&w, 1, id, "OSError: [Errno 28] No space left on device");
	world_run(&w, 20 * S);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_why_has(&w, id, "rank 3 died first, GPU 1 of n1");
	world_why_has(&w, id, "OSError: [Errno 28] No space left on device");
	world_why_has(&w, id, "what was done: restart from the beginning as attempt 2");
	world_verb(&w, IN_RESTART, id);
	world_run(&w, 20 * S);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->attempt, 3);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_false(world_why_says(&w, id, "OSError"));
	world_done(&w);
}

/* However much the rank had to say: what it said last, and what follows, are told. */
static void why_tells_all_of_a_long_story(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 1, 2, 5);

	world_exit(&w, 0, id, 1, 1, 0);
	says(&w, 0, id, "RuntimeError: HIP error: an illegal memory access was encountered");
	for (int i = 1; i < MO_TAIL_LINES - 1; i++) {
		_cleanup_(mo_freep) char *line = mo_printf("frame #%d: c10::of_it", i);

		says(&w, 0, id, line);
	}
	world_run(&w, S);
	world_why_has(&w, id, "RuntimeError: HIP error: an illegal memory access");
	world_why_has(&w, id, "frame #18: c10::of_it");
	world_why_has(&w, id, "what was done: restart from the beginning as attempt 2");
	world_why_has(&w, id, "what to do: look at the GPU");
	world_done(&w);
}

/* Whose watchdog fired first is no cause: the fabric is worth a look. */
static void why_tells_of_a_fabric(void **state)
{
	struct world w;
	int64_t id = job_on(&w, 2, 4, 5);

	world_exit(&w, 1, id, 3, 1, 0);
	says(&w, 1, id,
	     "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)");
	world_run(&w, S);
	assert_string_equal(newest(&w, id)->class, "hang");
	world_why_has(&w, id, "moectl fabric check RECIPE --job j-1");
	world_done(&w);
}

/* Every class that a verdict can have ends in a row without a condition. */
static void every_class_has_a_row(void **state)
{
	for (int class = 0; class < FAIL_OK; class ++) {
		size_t always = 0;

		for (size_t i = 0; i < n_remedies; i++)
			always += remedies[i].class == class && remedies[i].when == WHEN_ALWAYS &&
				  (i + 1 == n_remedies || remedies[i + 1].class != class);
		assert_int_equal(always, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_everything_at_the_start_is_the_users_error),
		cmocka_unit_test(words_about_a_peer_lose),
		cmocka_unit_test(a_signal_beats_words_of_others),
		cmocka_unit_test(what_was_survived_is_no_evidence),
		cmocka_unit_test(only_what_is_proved_cordons),
		cmocka_unit_test(an_old_finding_is_not_near),
		cmocka_unit_test(no_cordon_on_a_users_error),
		cmocka_unit_test(cordons_have_a_limit),
		cmocka_unit_test(storage_burns_no_budget),
		cmocka_unit_test(the_recipe_says_otherwise),
		cmocka_unit_test(why_tells_everything),
		cmocka_unit_test(why_tells_it_while_the_next_one_runs),
		cmocka_unit_test(why_tells_all_of_a_long_story),
		cmocka_unit_test(why_tells_of_a_fabric),
		cmocka_unit_test(every_class_has_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
