/* Step supervisor decisions in virtual time: from the launch to the end. */
#include "tests/unit/acore/stepd_bed.h"

static void test_good_life(void **state)
{
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	assert_string_equal(said(b), "hold");
	simple(b, SE_LAUNCH, MO_NONE);
	assert_string_equal(said(b), "");
	simple(b, SE_PORTS, MO_NONE);
	assert_string_equal(said(b), "fork");
	started(b, 1);
	started(b, 1);
	assert_string_equal(said(b), "note:started@1");
	started(b, 0);
	assert_string_equal(said(b), "note:started@0 release note:running");
	assert_true(stepd_core_deadline(b->core) == INT64_MAX);
	exited(b, 1, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@1/exited");
	exited(b, 1, 0, MO_NONE);
	assert_string_equal(said(b), "");
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@0/exited kill");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
	simple(b, SE_EMPTY, MO_NONE);
	simple(b, SE_KILL, MO_NONE);
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "");
	assert_true(stepd_core_deadline(b->core) == INT64_MAX);
}

static void test_busy_port(void **state)
{
	struct bed *b = *state;
	struct stepd_event e = event(SE_PORTS, MO_NONE);

	simple(b, SE_LAUNCH, MO_NONE);
	said(b);
	e.ok = false;
	give(b, &e);
	assert_string_equal(said(b), "note:refused/port-busy note:gone done");
}

static void test_exec_fails(void **state)
{
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	said(b);
	simple(b, SE_START_FAILED, 0);
	assert_string_equal(said(b), "note:refused@0/exec release kill");
	simple(b, SE_START_FAILED, 0);
	assert_string_equal(said(b), "");
	started(b, 1);
	assert_string_equal(said(b), "note:started@1 kill");
	exited(b, 1, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "note:exit@1/killed");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_all_fail_to_start(void **state)
{
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	simple(b, SE_START_FAILED, 0);
	simple(b, SE_START_FAILED, 1);
	said(b);
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_bind_fails(void **state)
{
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	started(b, 0);
	said(b);
	simple(b, SE_BIND_FAILED, 1);
	assert_string_equal(said(b), "note:refused@1/bind release kill");
	exited(b, 0, MO_NONE, SIGKILL);
	exited(b, 1, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "note:exit@0/killed note:exit@1/killed");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_stop(void **state)
{
	struct bed *b = *state;

	run(b);
	stop(b, SIGUSR1, 5000000);
	assert_string_equal(said(b), "signal:10");
	b->now += 1000000;
	stop(b, SIGUSR1, 5000000);
	assert_string_equal(said(b), "");
	assert_true(stepd_core_deadline(b->core) == 6000000);
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@0/stopped");
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "");
	b->now = 6000000;
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "kill");
	exited(b, 1, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "note:exit@1/killed");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

/* Nobody ordered it: reported at once, before any rank ends; an order that comes later changes
 * nothing, nor does a signal after an order. */
static void test_stopped_by_its_machine(void **state)
{
	struct bed *b = *state;

	run(b);
	stop_outside(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "note:stopping signal:15");
	stop_outside(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "");
	stop(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "");
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@0/stopped");
}

static void test_ordered_first(void **state)
{
	struct bed *b = *state;

	run(b);
	stop(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "signal:15");
	stop_outside(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "");
}

static void test_shorter_grace_wins(void **state)
{
	struct bed *b = *state;

	run(b);
	stop(b, SIGTERM, INT64_MAX);
	stop(b, SIGTERM, 2000000);
	assert_true(stepd_core_deadline(b->core) == 3000000);
}

static void test_stop_before_fork(void **state)
{
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	said(b);
	stop(b, SIGTERM, 1);
	assert_string_equal(said(b), "note:gone done");
}

static void test_kill_repeats_until_empty(void **state)
{
	struct bed *b = *state;

	run(b);
	simple(b, SE_KILL, MO_NONE);
	assert_string_equal(said(b), "kill");
	b->now = stepd_core_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "kill");
	assert_true(stepd_core_deadline(b->core) == b->now + 2000000);
	struct stepd_event e = event(SE_STUCK, 1);
	e.note.pid = 55;
	give(b, &e);
	assert_string_equal(said(b), "note:unkillable@1");
	e = event(SE_STUCK, 1);
	e.note.pid = 55;
	give(b, &e);
	assert_string_equal(said(b), "");
	exited(b, 0, MO_NONE, SIGKILL);
	exited(b, 1, MO_NONE, SIGSEGV);
	assert_string_equal(said(b), "note:exit@0/killed note:exit@1/signalled");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_cause_of_the_shell_is_kept(void **state)
{
	struct bed *b = *state;
	struct stepd_event e = event(SE_EXIT, 0);

	run(b);
	e.note.signal = SIGKILL;
	e.note.cause = mo_strdup("oom");
	give(b, &e);
	assert_string_equal(said(b), "note:exit@0/oom");
}

static void test_lost_status_is_reported(void **state)
{
	struct bed *b = *state;

	run(b);
	exited(b, 0, 0, MO_NONE);
	said(b);
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:exit@1/unknown note:gone done");
}

/* The configuration is read before the ranks, and nothing waits for whoever reads it. */
static void test_configuration(void **state)
{
	struct bed *b = *state;
	struct stepd_event e;

	b->launch.config = mo_strdup("primus");
	for (int what = 0; what < 4; what++) {
		stepd_core_free(b->core);
		b->core = stepd_core_new(&b->launch, false);
		simple(b, SE_LAUNCH, MO_NONE);
		simple(b, SE_PORTS, MO_NONE);
		assert_string_equal(said(b), "hold config");
		switch (what) {
		case 0:
			simple(b, SE_CONFIG_READ, MO_NONE);
			assert_string_equal(said(b), "fork");
			simple(b, SE_CONFIG_READ, MO_NONE);
			assert_string_equal(said(b), "");
			continue;
		case 1:
			e = event(SE_CONFIG_READ, 0);
			e.ok = false;
			e.note.text = mo_strdup("it cannot be loaded");
			give(b, &e);
			assert_string_equal(said(b), "note:refused@0/config release kill");
			break;
		case 2:
			stop(b, SIGTERM, 600000000);
			assert_string_equal(said(b), "release kill");
			break;
		case 3: simple(b, SE_KILL, MO_NONE); assert_string_equal(said(b), "release kill");
		}
		simple(b, SE_CONFIG_READ, MO_NONE);
		assert_string_equal(said(b), "");
		simple(b, SE_EMPTY, MO_NONE);
		assert_string_equal(said(b), "note:gone done");
	}
}

/* So are the files of variables, also without a configuration. */
static void test_files_of_variables(void **state)
{
	struct bed *b = *state;

	MO_ADD(&b->launch, env, &env_item_desc)->file = mo_strdup("/home/ann/key");
	stepd_core_free(b->core);
	b->core = stepd_core_new(&b->launch, false);
	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	assert_string_equal(said(b), "hold config");
	simple(b, SE_KILL, MO_NONE);
	assert_string_equal(said(b), "release kill");
	simple(b, SE_CONFIG_READ, MO_NONE);
	assert_string_equal(said(b), "");
}

static int state_named(const char *name)
{
	for (int i = 0; stepd_state_name(i); i++)
		if (strcmp(stepd_state_name(i), name) == 0)
			return i;
	fail_msg("no state %s", name);
	return -1;
}

/* A step of two ranks with everything that a start may have, in that state. */
static void reach(struct bed *b, const char *name)
{
	static const char *const order[] = { "new",   "namespace", "preparing",
					     "ports", "reading",   "up" };
	const int next[] = { SE_LAUNCH, SE_NAMESPACE, SE_PREPARED, SE_PORTS, SE_CONFIG_READ };

	for (size_t i = 0; i < ELEMENTSOF(next) && strcmp(order[i], name) != 0; i++)
		simple(b, next[i], MO_NONE);
	if (strcmp(name, "stopping") == 0)
		stop(b, SIGTERM, 5000000);
	if (strcmp(name, "down") == 0 || strcmp(name, "gone") == 0)
		simple(b, SE_KILL, MO_NONE);
	if (strcmp(name, "gone") == 0)
		simple(b, SE_EMPTY, MO_NONE);
	said(b);
}

/* What docs/states.md does not list of a state does nothing there. */
static void test_unlisted_is_ignored(void **state)
{
	static const char *const names[] = { "new", "namespace", "preparing", "ports", "reading",
					     "up",  "stopping",  "down",      "gone" };
	struct bed *b = *state;
	size_t ignored = 0;

	mo_strs_add(&b->launch.prepare, &b->launch.n_prepare, "true");
	b->launch.prepare_limit_us = 60000000;
	b->launch.config = mo_strdup("primus");
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		for (int e = 0; stepd_event_name(e); e++) {
			if (stepd_follows(state_named(names[i]), e))
				continue;
			stepd_core_free(b->core);
			b->core = stepd_core_new(&b->launch, true);
			reach(b, names[i]);
			int64_t due = stepd_core_deadline(b->core);
			simple(b, e, 0);
			assert_string_equal(said(b), "");
			assert_true(stepd_core_deadline(b->core) == due);
			ignored++;
		}
	assert_true(ignored > 0);
	assert_null(stepd_state_name((int)ELEMENTSOF(names)));
}

static void test_every_event_matters_somewhere(void **state)
{
	for (int e = 0; stepd_event_name(e); e++) {
		bool any = false;

		for (int i = 0; stepd_state_name(i); i++)
			any |= stepd_follows(i, e) != NULL;
		assert_true(any);
		assert_null(stepd_follows(state_named("gone"), e));
	}
	assert_null(stepd_event_name(_SE_N));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEP_TEST(test_good_life),
		STEP_TEST(test_busy_port),
		STEP_TEST(test_exec_fails),
		STEP_TEST(test_all_fail_to_start),
		STEP_TEST(test_bind_fails),
		STEP_TEST(test_stop),
		STEP_TEST(test_shorter_grace_wins),
		STEP_TEST(test_stopped_by_its_machine),
		STEP_TEST(test_ordered_first),
		STEP_TEST(test_stop_before_fork),
		STEP_TEST(test_kill_repeats_until_empty),
		STEP_TEST(test_cause_of_the_shell_is_kept),
		STEP_TEST(test_lost_status_is_reported),
		STEP_TEST(test_configuration),
		STEP_TEST(test_files_of_variables),
		STEP_TEST(test_files_of_variables),
		STEP_TEST(test_unlisted_is_ignored),
		STEP_TEST(test_every_event_matters_somewhere),
	};

	return cmocka_run_group_tests_name("acore/step", tests, NULL, NULL);
}
