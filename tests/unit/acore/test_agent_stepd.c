/* Agent decisions: a stepd that dies, hangs or never starts; adoption by the next agent, and the
 * next boot. */
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "tests/unit/acore/agent_bed.h"

static void test_stepd_dies(void **state)
{
	struct bed *b = *state;

	running(b);
	note(b, 7, 1, 4, NOTE_EXIT, 5);
	said(b);
	simple(b, AE_STEPD_LOST, 7, 1);
	assert_string_equal(said(b), "sweep:7.1");
	simple(b, AE_STEPD_LOST, 7, 1);
	orders(b, CMD_KILL, 7, 1);
	assert_string_equal(said(b), "sync");
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "write:7.1:lost#5 write:7.1:exit#6@4 write:7.1:gone#7");
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "");
	note(b, 7, 1, 5, NOTE_LOST, MO_NONE);
	b->now += 5000000;
	simple(b, AE_TICK, 0, 0); /* what did not come back is written again */
	assert_string_equal(said(b), "write:7.1:exit#6@4 write:7.1:gone#7");
	note(b, 7, 1, 6, NOTE_EXIT, 4);
	note(b, 7, 1, 7, NOTE_GONE, MO_NONE);
	assert_string_equal(synced(b, 7, 1), "gone 7: started started running exit lost exit gone");
}

static void test_stepd_dies_after_all_exits(void **state)
{
	struct bed *b = *state;

	running(b);
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	note(b, 7, 1, 5, NOTE_EXIT, 5);
	simple(b, AE_STEPD_LOST, 7, 1);
	said(b);
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "write:7.1:gone#6");
}

static void test_stepd_cannot_start(void **state)
{
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	simple(b, AE_SPOOL_DONE, 7, 1);
	simple(b, AE_FENCE_DONE, 7, 1);
	said(b);
	give(b, (struct agent_event){ .type = AE_STEPD_LOST,
				      .job = 7,
				      .attempt = 1,
				      .text = "moe-stepd: No such file" });
	simple(b, AE_SWEPT, 7, 1);
	assert_int_equal(b->out.n_effects, 3);
	assert_string_equal(b->out.effects[1].note->text, "moe-stepd: No such file");
	assert_string_equal(said(b), "sweep:7.1 write:7.1:lost#1 write:7.1:gone#2");
}

static void test_hung_is_reported_never_killed(void **state)
{
	struct bed *b = *state;

	running(b);
	simple(b, AE_STEPD_SILENT, 7, 1);
	assert_string_equal(said(b), "");
	assert_string_equal(synced(b, 7, 1), "hung 3: started started running");
	orders(b, CMD_KILL, 7, 1);
	assert_string_equal(said(b), "sync");
	simple(b, AE_STEPD_UP, 7, 1);
	assert_string_equal(said(b), "kill:7.1");
}

static void spooled(struct bed *b, bool lock_held, bool boot_same)
{
	struct launch l;

	mo_desc_init(&launch_desc, &l);
	l.first_rank = 4;
	l.n_local = 2;
	give(b, (struct agent_event){ .type = AE_SPOOLED_STEP,
				      .job = 7,
				      .attempt = 1,
				      .lock_held = lock_held,
				      .boot_same = boot_same,
				      .launch = &l });
	mo_desc_done(&launch_desc, &l);
}

static void test_adopt_running(void **state)
{
	struct bed *b = *state;

	spooled(b, true, true);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_STARTED, 5);
	note(b, 7, 1, 3, NOTE_RUNNING, MO_NONE);
	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "fence:7.1 hello");
	simple(b, AE_STEPD_UP, 7, 1);
	welcome_with(b, 3, 7, 1, 2);
	assert_string_equal(said(b), "fence sync");
	assert_string_equal(synced(b, 7, 1), "running 3: running");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	simple(b, AE_STEPD_LOST, 7, 1);
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "sweep:7.1 write:7.1:lost#4 write:7.1:exit#5@4 "
				     "write:7.1:exit#6@5 write:7.1:gone#7");
}

static void test_adopt_both_died(void **state)
{
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "fence:7.1 sweep:7.1 hello");
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "write:7.1:lost#2 write:7.1:exit#3@4 write:7.1:gone#4");
}

static void test_adopt_agent_died_while_writing(void **state)
{
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_LOST, MO_NONE);
	simple(b, AE_STARTED, 0, 0);
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b),
			    "fence:7.1 sweep:7.1 hello write:7.1:exit#3@4 write:7.1:gone#4");
}

static void test_adopt_gone(void **state)
{
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 40, NOTE_EXIT, 4); /* acknowledged segments were deleted */
	note(b, 7, 1, 41, NOTE_GONE, MO_NONE);
	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "fence:7.1 hello");
	welcome_with(b, 3, 7, 1, 40);
	assert_string_equal(synced(b, 7, 1), "gone 41: gone");
}

static void test_adopt_trimmed_journal(void **state)
{
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 40, NOTE_SAMPLE, 4);
	simple(b, AE_STARTED, 0, 0);
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "fence:7.1 sweep:7.1 hello write:7.1:lost#41 "
				     "write:7.1:exit#42@4 write:7.1:exit#43@5 write:7.1:gone#44");
}

static void test_adopt_never_started(void **state)
{
	struct bed *b = *state;

	spooled(b, false, true);
	simple(b, AE_STARTED, 0, 0);
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(said(b), "fence:7.1 sweep:7.1 hello fence sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync"); /* not before the sweep is done */
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "");
	assert_string_equal(synced(b, 7, 1), "spooled 0:");
	struct order old = { .kind = CMD_LAUNCH, .job = 7, .attempt = 1, .epoch = 2 };
	reply_full(b, true, 3, 500000, &old, 1, NULL, 0);
	assert_string_equal(said(b), "sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "fence:7.1 sync");
	simple(b, AE_FENCE_DONE, 7, 1);
	assert_string_equal(said(b), "start:7.1");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
}

static void test_adopt_never_started_and_cancelled(void **state)
{
	struct bed *b = *state;

	spooled(b, false, true);
	simple(b, AE_STARTED, 0, 0);
	welcome_with(b, 3, 0, 0, 0);
	simple(b, AE_SWEPT, 7, 1);
	said(b);
	orders(b, CMD_KILL, 7, 1);
	assert_string_equal(said(b), "write:7.1:gone#1 sync");
	note(b, 7, 1, 1, NOTE_GONE, MO_NONE);
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(synced(b, 7, 1), "gone 1: gone");
	assert_string_equal(said(b), "news sync");
}

static void test_new_boot(void **state)
{
	struct bed *b = *state;

	spooled(b, false, false);
	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "fence:7.1 forget:7.1 hello");
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(synced(b, 7, 1), "none");
	said(b);
	orders(b, CMD_LAUNCH, 7, 1); /* the boot id was the proof: never again */
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (stale)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_stepd_dies),
		T(test_stepd_dies_after_all_exits),
		T(test_stepd_cannot_start),
		T(test_hung_is_reported_never_killed),
		T(test_adopt_running),
		T(test_adopt_both_died),
		T(test_adopt_agent_died_while_writing),
		T(test_adopt_gone),
		T(test_adopt_trimmed_journal),
		T(test_adopt_never_started),
		T(test_adopt_never_started_and_cancelled),
		T(test_new_boot),
	};
	return cmocka_run_group_tests_name("acore/steps_stepd", tests, NULL, NULL);
}
