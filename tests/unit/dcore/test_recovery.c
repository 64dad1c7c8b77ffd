/* What follows a failure: peers are killed at once, the next attempt waits for proof, classes,
 * budget, ports, incidents and their waterfall. */
#include "tests/unit/dcore/world.h"
#include "daemon/core/view/why_node.h"
#include "daemon/core/view/why_view.h"
#include "daemon/core/view/why.h"

#include <signal.h>
#include <string.h>

static int64_t running(struct world *w, size_t nodes, int64_t gpus, int64_t ranks)
{
	world_init(w, nodes, gpus);
	return world_submit_running(w, ranks, 0);
}

static bool event_says(const struct world *w, const char *text)
{
	for (size_t i = 0; i < core_state(w->core)->n_events; i++)
		if (mo_streq(core_state(w->core)->events[i].message, text))
			return true;
	return false;
}

static void a_dead_rank_kills_its_peers_and_restarts(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 4), port = world_job(&w, id)->run.port;
	const struct incident *inc;

	for (int64_t i = 1; i <= 4; i++)
		world_iteration(&w, 0, id, i);
	world_run(&w, S);
	world_exit(&w, 1, id, 3, 0, SIGKILL);
	world_beat(&w, 1);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	assert_int_equal(world_job(&w, id)->failure.rank, 3);
	world_tick(&w, S);
	assert_int_equal(world_job(&w, id)->attempt, 1); /* n0 did not prove its ranks dead */
	world_beat(&w, 0);
	assert_int_equal(world_count(&w, 0, CMD_STOP), 0);
	assert_true(world_count(&w, 0, CMD_KILL) >= 1);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->restarts, 1);
	assert_true(world_job(&w, id)->run.port != port);
	world_run(&w, S);
	/* until its first iteration */
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->n_incidents, 1);
	inc = &world_job(&w, id)->incidents[0];
	assert_string_equal(inc->class, "transient");
	assert_string_equal(inc->cause, "signal 9 SIGKILL");
	assert_string_equal(inc->evidence[0], "last words");
	assert_string_equal(inc->action, "restart from the beginning as attempt 2");
	assert_int_equal(inc->first_rank, 3);
	assert_int_equal(inc->lost_iterations, 4);
	assert_int_equal(inc->waterfall.stop, 1000);
	assert_int_equal(inc->waterfall.recompute, MO_NONE);
	for (int64_t i = 2; i <= 4; i++)
		world_iteration(&w, 0, id, i);
	world_run(&w, S);
	assert_true(world_job(&w, id)->incidents[0].waterfall.recompute >= 0);
	world_done(&w);
}

/* Four iterations lost; attempt 2 trained until now, and one beat tells of its iterations first ..
 * 6, each ended 100 ms after the one before; behind the third the node's wall clock is set by that
 * much. Returns the incident's waterfall. */
static struct waterfall reported_by(int64_t set_us, int64_t first, double step_ms)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);

	for (int64_t i = 1; i <= 4; i++)
		world_iteration(&w, 0, id, i);
	world_run(&w, S);
	world_exit(&w, 0, id, 1, 0, SIGKILL);
	world_beat(&w, 0);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_tick(&w, 900000);
	for (int64_t i = first; i <= 6; i++) {
		world_iteration(&w, 0, id, i);
		struct toy_step *st = world_toy_step(&w, 0, id);
		struct note *n = &st->notes[st->n_notes - 1];
		n->time = 50000 * S + i * 100000 + (i > 3 ? set_us : 0);
		n->mono_ns = 5000 * S * 1000 + i * 100000000;
		n->sample->step_ms = step_ms;
	}
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->incidents[0].lost_iterations, 4);
	struct waterfall fall = world_job(&w, id)->incidents[0].waterfall;
	world_done(&w);
	return fall;
}

static struct waterfall reported_together(int64_t first, double step_ms)
{
	return reported_by(0, first, step_ms);
}

/* Progress is reported once a second: when the lost iterations are done again before the first
 * word, their own times count; without any the time is not known, and never 0. */
static void recomputing_faster_than_a_beat_is_measured(void **state)
{
	struct waterfall each = reported_together(1, 100), last = reported_together(6, 100),
			 slow = reported_together(6, 1e7), untold = reported_together(6, MO_NONE_F);

	assert_int_equal(each.recompute, 400);
	assert_int_equal(each.init + each.load, 300); /* 900 ms, less six iterations */
	assert_int_equal(last.recompute, 400);
	assert_int_equal(last.init + last.load, 300);
	/* times that cannot be: all the time there was, shared evenly */
	assert_int_equal(slow.init + slow.load, 0);
	assert_int_equal(slow.recompute, 600);
	assert_int_equal(untold.recompute, MO_NONE);
}

/* How long ago a note was written is told by a clock that nobody sets. */
static void a_wall_clock_that_is_set_between_two_notes(void **state)
{
	for (int hours = -10; hours <= 10; hours += 20) {
		struct waterfall w = reported_by(hours * 3600LL * S, 1, 100);

		assert_int_equal(w.recompute, 400);
		assert_int_equal(w.init + w.load, 300);
	}
}

static void jobs_without_iterations_run_again_when_started(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);

	world_exit(&w, 0, id, 1, 0, SIGSEGV);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

static void exit_1_before_the_first_iteration_is_the_users_error(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);

	world_exit(&w, 0, id, 1, 1, 0);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_non_null(strstr(world_job(&w, id)->reason, "last words"));
	assert_string_equal(world_job(&w, id)->incidents[0].class, "user_error");
	world_done(&w);
}

/* A rank's exit before the first iteration, with its last line. */
static int64_t first_exit(struct world *w, int64_t code, const char *line)
{
	int64_t id = running(w, 1, 2, 2);
	struct toy_step *s;
	struct note *n;

	world_exit(w, 0, id, 1, code, 0);
	s = world_toy_step(w, 0, id);
	n = &s->notes[s->n_notes - 1];
	mo_strs_add(&n->tail, &n->n_tail, line);
	world_run(w, 2 * S);
	return id;
}

static void exit_codes_before_the_first_iteration(void **state)
{
	static const struct {
		int64_t code;
		int state;
		const char *class, *said;
	} cases[] = {
		{ 1, JOB_FAILED, "user_error",
		  "an error of the program or its arguments; it said: last line" },
		{ 2, JOB_FAILED, "user_error", "exit code 2" },
		{ 126, JOB_FAILED, "user_error", "could not execute" },
		{ 127, JOB_FAILED, "user_error", "was not found" },
		{ 128, JOB_FAILED, "user_error", "exit code 128" },
		{ 255, JOB_FAILED, "user_error", "exit code 255" },
		{ 137, JOB_RUNNING, "transient",
		  "exit code 137, a shell's word for signal 9 SIGKILL" },
		{ 192, JOB_RUNNING, "transient", "signal 64" },
		{ 193, JOB_FAILED, "user_error", "exit code 193" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct world w;
		int64_t id = first_exit(&w, cases[i].code, "last line");
		const struct job *j = world_job(&w, id);

		assert_int_equal(j->state, cases[i].state);
		assert_int_equal(j->attempt, cases[i].state == JOB_FAILED ? 1 : 2);
		assert_string_equal(j->incidents[0].class, cases[i].class);
		assert_non_null(
			strstr(cases[i].state == JOB_FAILED ? j->reason : j->incidents[0].cause,
			       cases[i].said));
		world_done(&w);
	}
}

/* What the engine file says of an exit code stands in the incident and in the events. */
static void an_exit_code_has_its_meaning(void **state)
{
	struct world w;
	struct submit spec;
	struct kv *code;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	code = MO_ADD(&spec.engine, exit_codes, &kv_desc);
	code->key = mo_strdup("16");
	code->value = mo_strdup("a result could not be reproduced");
	int64_t id = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	world_exit(&w, 0, id, 1, 16, 0);
	world_run(&w, 2 * S);
	assert_string_equal(world_job(&w, id)->incidents[0].cause,
			    "exit code 16: a result could not be reproduced");
	world_done(&w);
}

static void a_port_taken_before_the_bind_is_no_users_error(void **state)
{
	struct world w;
	int64_t id = first_exit(&w, 1,
				"torch.distributed.DistNetworkError: EADDRINUSE, address already "
				"in use");

	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->restarts, 0);
	assert_int_equal(world_job(&w, id)->n_incidents, 0);
	for (int tries = 0; tries < 10 && world_job(&w, id)->state == JOB_RUNNING; tries++) {
		struct toy_step *s;
		struct note *n;

		world_exit(&w, 0, id, 1, 1, 0);
		s = world_toy_step(&w, 0, id);
		n = &s->notes[s->n_notes - 1];
		mo_strs_add(&n->tail, &n->n_tail, "OSError: [Errno 98] Address already in use");
		world_run(&w, 2 * S);
	}
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED); /* a port of the program's own */
	assert_int_equal(world_job(&w, id)->attempt, 5);
	assert_string_equal(world_job(&w, id)->incidents[0].class, "user_error");
	world_done(&w);
}

/* torch warns and unwinds after the traceback; what the job says is the exception */
static void the_exception_is_the_reason(void **state)
{
	static const struct {
		const char *lines[5], *said;
	} cases[] = {
		{ { "[rank1]:     return 1 // None", "[rank1]: TypeError: unsupported operand",
		    "> building datasets ...",
		    "[rank1]:[W1121 10:19:17.165596547 ProcessGroupNCCL.cpp:1575] Warning: bye" },
		  "arguments; it said: TypeError: unsupported operand" },
		{ { "torch.OutOfMemoryError: CUDA out of memory.",
		    "Exception raised from recvBytes at Utils.hpp:682",
		    "frame #0: c10::Error::Error(int)", "" },
		  "torch.OutOfMemoryError: CUDA out of memory." },
		{ { "KeyboardInterrupt" }, "arguments; it said: KeyboardInterrupt" },
		{ { "Errors: none", "train.py: error: unrecognized arguments: --x",
		    "[W1121 10:19:17.1 a.cpp:1] bye" },
		  "arguments; it said: train.py: error: unrecognized arguments: --x" },
		{ { "[2026-11-21] step 1 begins" },
		  "arguments; it said: [2026-11-21] step 1 begins" },
		/* Primus colours its errors. */
		{ { "\x1b[31m\x1b[1m[ERROR] \x1b[0mRuntimeError: no such model\x1b[0m" },
		  "arguments; it said: [ERROR] RuntimeError: no such model" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct world w;
		int64_t id = running(&w, 1, 2, 2);
		struct note *n;
		struct toy_step *s;

		world_exit(&w, 0, id, 1, 1, 0);
		s = world_toy_step(&w, 0, id);
		n = &s->notes[s->n_notes - 1];
		for (size_t k = 0; k < ELEMENTSOF(cases[i].lines) && cases[i].lines[k]; k++)
			mo_strs_add(&n->tail, &n->n_tail, cases[i].lines[k]);
		world_run(&w, 2 * S);
		assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
		assert_non_null(strstr(world_job(&w, id)->reason, cases[i].said));
		world_done(&w);
	}
}

static void an_exit_event_says_how(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);

	world_iteration(&w, 0, id, 1);
	world_exit(&w, 0, id, 0, 3, 0);
	world_beat(&w, 0);
	assert_true(event_says(&w, "rank 0 on n0 ended: exit code 3"));
	world_done(&w);
	id = running(&w, 1, 2, 2);
	world_iteration(&w, 0, id, 1);
	world_exit(&w, 0, id, 1, 0, SIGSEGV);
	world_beat(&w, 0);
	assert_true(event_says(&w, "rank 1 on n0 ended: signal 11 SIGSEGV"));
	world_done(&w);
}

static void exit_1_later_is_not(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);

	world_iteration(&w, 0, id, 1);
	world_exit(&w, 0, id, 1, 1, 0);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

static void exit_1_after_a_peers_death_is_not(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 1, 2);

	/* n0's rank echoes the death of n1's, and its message is first */
	w.toys[1].deaf = true;
	world_exit(&w, 0, id, 0, 1, 0);
	world_beat(&w, 0);
	assert_string_equal(world_job(&w, id)->failure.class, "user_error");
	world_exit(&w, 1, id, 1, 0, SIGSEGV);
	w.toys[1].deaf = false;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->incidents[0].class, "suspect");
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 1);
	world_done(&w);
}

static void on_one_node_the_clock_decides(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);
	struct toy_step *s;

	world_iteration(&w, 0, id, 1);
	world_exit(&w, 0, id, 0, 1, 0);
	world_exit(&w, 0, id, 1, 2, 0);
	s = world_toy_step(&w, 0, id);
	for (size_t i = 0; i < s->n_notes; i++)
		if (s->notes[i].kind == NOTE_EXIT)
			s->notes[i].mono_ns = 1000 - s->notes[i].rank;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 1);
	assert_string_equal(world_job(&w, id)->incidents[0].cause, "exit code 2");
	world_done(&w);
}

/* It ends now, as the clock of its boot has it. */
static void exits_by_its_clock(struct world *w, size_t toy, int64_t id, int64_t rank, int64_t code)
{
	struct toy_step *s;

	world_exit(w, toy, id, rank, code, 0);
	s = world_toy_step(w, toy, id);
	for (size_t i = 0; i < s->n_notes; i++)
		if (s->notes[i].kind == NOTE_EXIT)
			s->notes[i].mono_ns = (w->now - w->toys[toy].clock_us) * 1000;
}

/* The rank of n0 ends, that of n1 so much later, and n0 is heard again after 5 s. Who was first? */
static int64_t first_of_two_nodes(int64_t later_us, bool tells, int64_t boot_us)
{
	struct world w;
	int64_t id = running(&w, 2, 1, 2), first;

	w.toys[0].clock_us = tells ? w.now - boot_us : 0;
	w.toys[1].clock_us = w.now - 77 * S;
	world_iteration(&w, 0, id, 1);
	world_run(&w, 3 * S);
	w.toys[0].deaf = true;
	exits_by_its_clock(&w, 0, id, 0, 1);
	world_tick(&w, later_us);
	exits_by_its_clock(&w, 1, id, 1, 1);
	world_run(&w, 5 * S);
	assert_string_equal(world_job(&w, id)->failure.node, "n1");
	w.toys[0].deaf = false;
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	first = world_job(&w, id)->incidents[0].first_rank;
	world_done(&w);
	return first;
}

static void across_nodes_their_clocks_decide(void **state)
{
	assert_int_equal(first_of_two_nodes(200000, true, 5000 * S), 0);
	assert_int_equal(first_of_two_nodes(200000, true, 4 * S), 0);
	/* messages may be on their way for as long */
	assert_int_equal(first_of_two_nodes(10000, true, 5000 * S), 1);
	assert_int_equal(first_of_two_nodes(200000, false, 5000 * S), 1);
}

/* What was told first was done by the controller that the state was restored from: of the rest the
 * clocks of their nodes say who was first. */
static void of_ours_and_others_the_earliest_other_is_first(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, 1, 3);
	struct toy_step *s;

	for (size_t i = 0; i < 3; i++)
		w.toys[i].clock_us = w.now - (int64_t)(i + 1) * 50 * S;
	world_iteration(&w, 0, id, 1);
	world_run(&w, 3 * S);
	w.toys[0].deaf = w.toys[1].deaf = true;
	exits_by_its_clock(&w, 1, id, 1, 1);
	world_tick(&w, S);
	world_exit(&w, 2, id, 2, 0, SIGKILL);
	s = world_toy_step(&w, 2, id);
	for (size_t i = 0; i < s->n_notes; i++)
		if (s->notes[i].kind == NOTE_EXIT)
			mo_str_set(&s->notes[i].cause, "killed");
	exits_by_its_clock(&w, 0, id, 0, 1);
	world_run(&w, 2 * S);
	assert_string_equal(world_job(&w, id)->failure.node, "n2");
	w.toys[0].deaf = w.toys[1].deaf = false;
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 1);
	assert_string_equal(world_job(&w, id)->incidents[0].cause, "exit code 1");
	world_done(&w);
}

static void the_same_failure_three_times_stops_it(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(world_job(&w, id)->attempt, i + 1);
		world_iteration(&w, 0, id, 1 + i);
		world_exit(&w, 0, id, 1, 0, SIGABRT);
		world_run(&w, 2 * S);
	}
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_int_equal(world_job(&w, id)->restarts, 2);
	assert_non_null(
		strstr(world_job(&w, id)->reason,
		       "failed the same way 3 times without a new checkpoint: signal 6 SIGABRT"));
	world_done(&w);
}

static void as_often_as_the_recipe_says(void **state)
{
	struct submit spec;
	struct world w;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.max_cycles = 2;
	int64_t id = world_submit(&w, &spec);

	world_run(&w, S);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(world_job(&w, id)->attempt, i + 1);
		world_iteration(&w, 0, id, 1 + i);
		world_exit(&w, 0, id, 1, 0, SIGABRT);
		world_run(&w, 2 * S);
	}
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_non_null(strstr(world_job(&w, id)->reason,
			       "failed the same way 2 times without a new checkpoint"));
	mo_desc_done(&submit_desc, &spec);
	world_done(&w);
}

static void a_new_checkpoint_or_another_failure_begins_anew(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);

	for (int i = 0; i < 6; i++) {
		struct note *n = world_note(&w, 0, id, NOTE_CHECKPOINT);

		n->iteration = 10 + i;
		world_iteration(&w, 0, id, 10 + i);
		world_exit(&w, 0, id, 1, 0, SIGABRT);
		world_run(&w, 2 * S);
		assert_int_equal(world_job(&w, id)->attempt, i + 2);
	}
	for (int i = 0; i < 7; i++) {
		world_iteration(&w, 0, id, 1);
		world_exit(&w, 0, id, 1, i % 2, i % 2 ? 0 : SIGBUS);
		world_run(&w, 2 * S);
	}
	assert_int_equal(world_job(&w, id)->attempt, 14);
	world_iteration(&w, 0, id, 1);
	world_exit(&w, 0, id, 1, 0, SIGSEGV);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED); /* nine without any progress */
	world_done(&w);
}

static void busy_ports_cost_nothing(void **state)
{
	struct world w;
	int64_t id, port;
	struct toy_step *s;
	struct note *n;

	world_init(&w, 1, 2);
	id = world_submit_gpus(&w, 2);
	port = world_job(&w, id)->run.port;
	w.no_launch = true;
	world_beat(&w, 0);
	s = MO_GROW(w.toys[0].steps, w.toys[0].n_steps);
	*s = (struct toy_step){ .job = id, .attempt = 1, .gone = true };
	n = world_note(&w, 0, id, NOTE_REFUSED);
	n->cause = mo_strdup("port-busy");
	world_note(&w, 0, id, NOTE_GONE);
	w.no_launch = false;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->restarts, 0);
	assert_int_equal(world_job(&w, id)->run.port, port + 4);
	assert_int_equal(world_job(&w, id)->n_incidents, 0);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

/* The node that has the job says of its step that it waits; which node that is. */
static size_t waits(struct world *w, int64_t id)
{
	const struct job *j = world_job(w, id);
	size_t toy = 0;

	while (!mo_streq(world_node(w, toy)->name, j->run.places[0].node))
		toy++;
	*MO_GROW(w->toys[toy].steps, w->toys[toy].n_steps) = (struct toy_step){
		.job = id, .attempt = j->attempt, .waits = "GPU 0: 20 GiB are held"
	};
	return toy;
}

static void refuse(struct world *w, size_t toy, int64_t id)
{
	struct note *n = world_note(w, toy, id, NOTE_REFUSED);

	n->cause = mo_strdup(LAUNCH_GPU_HELD);
	n->text = mo_strdup("GPU 0: 20 GiB are held");
	world_note(w, toy, id, NOTE_GONE);
	world_toy_step(w, toy, id)->gone = true;
	world_run(w, 2 * S);
}

/* The driver of a node keeps what the dead had: another one is taken, and what found it says
 * whether the node is cordoned. Two such nodes are not the program, which was never started. */
static void gpus_that_are_not_given_back(void **state)
{
	static const int actions[] = { ACTION_CORDON, ACTION_WARN };
	struct world w;
	int64_t id;

	world_init_telling(&w, 3, 2);
	w.no_launch = true;
	id = world_submit_gpus(&w, 2);
	for (size_t k = 0; k < ELEMENTSOF(actions); k++) {
		size_t toy = waits(&w, id);

		w.no_launch = k == 0;
		world_finding(&w, toy, "gpu.vram_held", CHECK_CRIT, actions[k]);
		refuse(&w, toy, id);
		const struct incident *inc = &world_job(&w, id)->incidents[k];

		assert_string_equal(inc->node, world_node(&w, toy)->name);
		assert_string_equal(inc->class, "node_fault");
		assert_string_equal(inc->evidence[0], "GPU 0: 20 GiB are held");
		assert_int_equal(world_node(&w, toy)->drain.asked, k == 0);
	}
	const struct job *j = world_job(&w, id);

	assert_int_equal(j->state, JOB_RUNNING);
	for (size_t k = 0; k < ELEMENTSOF(actions); k++)
		assert_string_not_equal(j->run.places[0].node, j->incidents[k].node);
	world_done(&w);
}

/* While the agent waits, people are told for what, and nobody when it is over. */
static void a_launch_that_waits_for_its_gpus_says_so(void **state)
{
	struct world w;
	struct why_view why;

	world_init(&w, 2, 2);
	int64_t id = world_submit_gpus(&w, 2);
	size_t toy = waits(&w, id);

	world_run(&w, 12 * S);
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(w.core), world_job(&w, id), w.now, &why);
	assert_int_equal(world_job(&w, id)->state, JOB_STARTING);
	assert_string_equal(why.reasons[0].code, "gpu-held");
	assert_non_null(strstr(why.reasons[0].text, "for 1"));
	assert_string_equal(why.reasons[0].evidence[0], "GPU 0: 20 GiB are held");
	mo_desc_done(&why_view_desc, &why);
	assert_true(world_event_seen(&w, "step.waits"));
	assert_int_equal(core_steps_waiting(w.core), 1);
	world_toy_step(&w, toy, id)->waits = NULL;
	world_note(&w, toy, id, NOTE_RUNNING);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(core_steps_waiting(w.core), 0);
	world_done(&w);
}

static void a_refused_program_is_the_users_error(void **state)
{
	static const struct {
		const char *cause;
		int state;
	} cases[] = { { "exec", JOB_FAILED },  { "bind", JOB_FAILED },    { "workdir", JOB_FAILED },
		      { "user", JOB_FAILED },  { "prepare", JOB_FAILED }, { "config", JOB_FAILED },
		      { "spool", JOB_RUNNING } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct world w;
		struct toy_step *s;
		struct note *n;
		int64_t id;

		world_init(&w, 1, 2);
		id = world_submit_gpus(&w, 2);
		s = MO_GROW(w.toys[0].steps, w.toys[0].n_steps);
		*s = (struct toy_step){ .job = id, .attempt = 1, .gone = true };
		n = world_note(&w, 0, id, NOTE_REFUSED);
		n->cause = mo_strdup(cases[i].cause);
		n->text = mo_strdup("no such file");
		world_note(&w, 0, id, NOTE_GONE);
		world_run(&w, 2 * S);
		assert_int_equal(world_job(&w, id)->state, cases[i].state);
		/* nothing ran, so no rank died of it */
		assert_int_equal(world_job(&w, id)->incidents[0].first_rank, MO_NONE);
		if (cases[i].state == JOB_FAILED) {
			assert_non_null(strstr(world_job(&w, id)->reason, "no such file"));
			world_next_has(&w, id, "as it is, it fails again");
		} else
			assert_int_equal(world_job(&w, id)->restarts, 1);
		world_done(&w);
	}
}

static void a_dead_supervisor_counts_as_such(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2);
	struct note *n;

	w.no_kill = true;
	world_note(&w, 0, id, NOTE_LOST);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	n = world_note(&w, 0, id, NOTE_EXIT);
	n->rank = 0;
	n->code = MO_NONE;
	n->cause = mo_strdup("supervisor-lost");
	world_toy_step(&w, 0, id)->gone = true;
	world_note(&w, 0, id, NOTE_GONE);
	w.no_launch = true;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->incidents[0].cause, "supervisor-lost");
	/* how it ended is not known */
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, MO_NONE);
	world_done(&w);
}

static void an_unkillable_rank_frees_the_job_but_not_the_node(void **state)
{
	struct world w;
	struct why_view why;
	int64_t id = running(&w, 2, 2, 2);
	struct note *n;

	world_toy_step(&w, 0, id)->hold = true;
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_beat(&w, 0);
	n = world_note(&w, 0, id, NOTE_UNKILLABLE);
	n->rank = 1;
	n->pid = 999; /* not the rank that is left */
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	n = world_note(&w, 0, id, NOTE_UNKILLABLE);
	n->rank = 1;
	n->pid = 1001;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n1");
	mo_desc_init(&why_view_desc, &why);
	node_why(core_state(w.core), world_node(&w, 0), w.now, &why);
	assert_string_equal(why.reasons[0].code, "unkillable");
	mo_desc_done(&why_view_desc, &why);
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	assert_true(world_submit_gpus(&w, 3) > 0);
	world_run(&w, S);
	assert_int_equal(world_job(&w, 2)->state, JOB_QUEUED);
	world_exit(&w, 0, id, 1, 0, SIGKILL); /* at last */
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, 2)->state, JOB_RUNNING);
	world_done(&w);
}

static void grace_delays_the_next_attempt(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id;

	world_init(&w, 1, 1);
	world_recipe(&spec, 1);
	spec.recipe.grace_us = 30 * S;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 29 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

static void cancel_during_recovery(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 1, 2);

	w.no_kill = true;
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, S);
	world_verb(&w, IN_CANCEL, id);
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	world_beat(&w, 1);
	/* a failed attempt is not asked politely */
	assert_int_equal(w.toys[1].log[w.toys[1].n_log - 1].kind, CMD_KILL);
	w.no_kill = false;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_int_equal(world_job(&w, id)->n_incidents, 1);
	world_done(&w);
}

static void recovering_jobs_go_first(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id = running(&w, 1, 2, 2), other;

	world_recipe(&spec, 2);
	spec.recipe.priority = 100;
	other = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, other)->state, JOB_QUEUED);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_rank_kills_its_peers_and_restarts),
		cmocka_unit_test(recomputing_faster_than_a_beat_is_measured),
		cmocka_unit_test(a_wall_clock_that_is_set_between_two_notes),
		cmocka_unit_test(jobs_without_iterations_run_again_when_started),
		cmocka_unit_test(exit_1_before_the_first_iteration_is_the_users_error),
		cmocka_unit_test(exit_codes_before_the_first_iteration),
		cmocka_unit_test(an_exit_code_has_its_meaning),
		cmocka_unit_test(a_port_taken_before_the_bind_is_no_users_error),
		cmocka_unit_test(the_exception_is_the_reason),
		cmocka_unit_test(an_exit_event_says_how),
		cmocka_unit_test(exit_1_later_is_not),
		cmocka_unit_test(exit_1_after_a_peers_death_is_not),
		cmocka_unit_test(on_one_node_the_clock_decides),
		cmocka_unit_test(across_nodes_their_clocks_decide),
		cmocka_unit_test(of_ours_and_others_the_earliest_other_is_first),
		cmocka_unit_test(the_same_failure_three_times_stops_it),
		cmocka_unit_test(as_often_as_the_recipe_says),
		cmocka_unit_test(a_new_checkpoint_or_another_failure_begins_anew),
		cmocka_unit_test(busy_ports_cost_nothing),
		cmocka_unit_test(gpus_that_are_not_given_back),
		cmocka_unit_test(a_launch_that_waits_for_its_gpus_says_so),
		cmocka_unit_test(a_refused_program_is_the_users_error),
		cmocka_unit_test(a_dead_supervisor_counts_as_such),
		cmocka_unit_test(an_unkillable_rank_frees_the_job_but_not_the_node),
		cmocka_unit_test(grace_delays_the_next_attempt),
		cmocka_unit_test(cancel_during_recovery),
		cmocka_unit_test(recovering_jobs_go_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
