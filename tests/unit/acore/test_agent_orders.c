/* Agent decisions: orders of the controller, from the spool to the end; what is stale, foreign or
 * unknown. */
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "tests/unit/acore/agent_bed.h"

static void test_launch(void **state)
{
	struct bed *b = *state;

	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "hello");
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(said(b), "fence sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "spool:7.1 sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "spooled 0:");
	simple(b, AE_SPOOL_DONE, 7, 1);
	assert_string_equal(said(b), "fence:7.1");
	assert_string_equal(synced(b, 7, 1), "spooled 0:");
	simple(b, AE_FENCE_DONE, 7, 1);
	assert_string_equal(said(b), "start:7.1");
	simple(b, AE_SPOOL_DONE, 7, 1);
	simple(b, AE_FENCE_DONE, 7, 1);
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	simple(b, AE_STEPD_UP, 7, 1);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_STARTED, 5);
	assert_string_equal(said(b), "");
	assert_string_equal(synced(b, 7, 1), "starting 2: started started");
	note(b, 7, 1, 3, NOTE_RUNNING, MO_NONE);
	assert_string_equal(said(b), "news");
	note(b, 7, 1, 3, NOTE_RUNNING, MO_NONE);
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "running 3: started started running");
	acks(b, 7, 1, 2);
	assert_string_equal(synced(b, 7, 1), "running 3: running");
	assert_int_equal(agent_core_through(b->core, 7, 1), 2);
}

/* Spooled and fenced, with GPUs. */
static void held(struct bed *b, int64_t attempt)
{
	orders_with_gpus(b, 7, attempt);
	simple(b, AE_SPOOL_DONE, 7, attempt);
	said(b);
	simple(b, AE_FENCE_DONE, 7, attempt);
	assert_string_equal(said(b), attempt == 1 ? "release:7.1" : "release:7.2");
	assert_string_equal(synced(b, 7, attempt), "spooled 0:");
}

static void test_gpus_given_back(void **state)
{
	struct bed *b = *state;

	up(b);
	held(b, 1);
	orders_with_gpus(b, 7, 1);
	assert_string_equal(said(b), "sync");
	give(b, (struct agent_event){ .type = AE_HELD, .job = 7, .attempt = 1, .text = "GPU 0" });
	assert_string_equal(said(b), "");
	assert_string_equal(synced(b, 7, 1), "spooled 0: waits (GPU 0)");
	simple(b, AE_RELEASED, 7, 1);
	assert_string_equal(said(b), "start:7.1");
	assert_string_equal(synced(b, 7, 1), "starting 0:");
	give(b, (struct agent_event){ .type = AE_HELD, .job = 7, .attempt = 1, .text = "late" });
	assert_string_equal(synced(b, 7, 1), "starting 0:");
	simple(b, AE_RELEASED, 7, 1);
	assert_string_equal(said(b), "");
}

static void test_gpus_not_given_back(void **state)
{
	struct bed *b = *state;

	up(b);
	held(b, 1);
	give(b, (struct agent_event){ .type = AE_RELEASED, .job = 7, .attempt = 1, .text = "GPU" });
	assert_string_equal(said(b), "fence:7.1 forget:7.1 news");
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (gpu-held)");
}

/* Nothing was started: it is gone at once, whatever the GPUs do. */
static void test_killed_while_gpus_are_held(void **state)
{
	struct bed *b = *state;

	up(b);
	held(b, 1);
	orders(b, CMD_KILL, 7, 1);
	assert_string_equal(said(b), "write:7.1:gone#1 sync");
	note(b, 7, 1, 1, NOTE_GONE, MO_NONE);
	simple(b, AE_RELEASED, 7, 1);
	assert_string_equal(synced(b, 7, 1), "gone 1: gone");
}

static void test_spool_fails(void **state)
{
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	said(b);
	give(b, (struct agent_event){
			.type = AE_SPOOL_DONE, .job = 7, .attempt = 1, .text = "disk full" });
	assert_string_equal(said(b), "fence:7.1 forget:7.1 news");
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (spool)");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	acks(b, 7, 1, 2);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "none");
	/* a late repetition must not start it after all */
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (stale)");
}

/* An order for a later attempt raises the job's fence meanwhile: the answer is the waiting
 * attempt's all the same. */
static void test_fence_stands_higher(void **state)
{
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	orders(b, CMD_KILL, 7, 2);
	said(b);
	simple(b, AE_SPOOL_DONE, 7, 1);
	assert_string_equal(said(b), "fence:7.1");
	simple(b, AE_FENCE_DONE, 7, 1);
	assert_string_equal(said(b), "start:7.1");
}

/* Without the fence on disk nothing is started, then or by a late copy. */
static void test_fence_fails(void **state)
{
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	simple(b, AE_SPOOL_DONE, 7, 1);
	said(b);
	give(b, (struct agent_event){
			.type = AE_FENCE_DONE, .job = 7, .attempt = 1, .text = "disk full" });
	assert_string_equal(said(b), "fence:7.1 forget:7.1 news");
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (spool)");
	simple(b, AE_FENCE_DONE, 7, 1); /* that of the refusal */
	assert_string_equal(said(b), "");
	acks(b, 7, 1, 2);
	assert_string_equal(said(b), "sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (stale)");
}

static void test_stale_attempt(void **state)
{
	struct bed *b = *state;

	give(b, (struct agent_event){ .type = AE_FENCE, .job = 7, .attempt = 4 });
	up(b);
	orders(b, CMD_LAUNCH, 7, 3);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 3), "gone 2: refused gone (stale)");
	orders(b, CMD_LAUNCH, 7, 3);
	assert_string_equal(said(b), "sync");
	struct got unknown = { .job = 7, .attempt = 3, .unknown = true };
	reply_full(b, true, 3, 500000, NULL, 0, &unknown, 1);
	assert_string_equal(synced(b, 7, 3), "none");
	said(b);
	orders(b, CMD_LAUNCH, 7, 4);
	assert_string_equal(said(b), "sync");
	orders(b, CMD_LAUNCH, 7, 5);
	assert_string_equal(said(b), "spool:7.5 sync");
}

static void test_stale_epoch(void **state)
{
	struct bed *b = *state;
	struct order old = { .kind = CMD_LAUNCH, .job = 8, .attempt = 1, .epoch = 2 },
		     kill = { .kind = CMD_KILL, .job = 7, .attempt = 1, .epoch = 2 };

	running(b);
	reply_full(b, true, 3, 500000, &old, 1, NULL, 0);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 8, 1), "gone 2: refused gone (stale)");
	reply_full(b, true, 2, 500000, &kill, 1, NULL, 0);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "running 3: started started running");
	struct got a = { .job = 7, .attempt = 1, .through = 3 };
	/* an older controller's word acknowledges nothing */
	reply_full(b, true, 2, 500000, NULL, 0, &a, 1);
	assert_string_equal(synced(b, 7, 1), "running 3: started started running");
	said(b);
	reply_full(b, true, 9, 500000, NULL, 0, NULL, 0);
	assert_string_equal(said(b), "fence sync");
}

/* Ordered of the boot before: this one obeys nothing of it. */
static void test_earlier_boot(void **state)
{
	struct bed *b = *state;
	struct sync_reply r;

	up(b);
	for (int same = 0; same < 2; same++) {
		mo_desc_init(&sync_reply_desc, &r);
		r.epoch = 3;
		struct command *c = MO_ADD(&r, commands, &command_desc);
		c->kind = CMD_LAUNCH;
		c->job = 7;
		c->attempt = 1;
		c->epoch = 3;
		c->node = mo_strdup("n1");
		c->boot_id = mo_strdup(same ? "boot-1" : "before");
		c->launch = mo_desc_new(&launch_desc);
		c->launch->n_local = 2;
		give(b, (struct agent_event){ .type = AE_REPLY, .reply = &r });
		mo_desc_done(&sync_reply_desc, &r);
		assert_string_equal(said(b), same ? "spool:7.1" : "");
	}
}

static void test_foreign_node(void **state)
{
	struct bed *b = *state;
	struct sync_reply r;

	up(b);
	mo_desc_init(&sync_reply_desc, &r);
	r.epoch = 3;
	struct command *c = MO_ADD(&r, commands, &command_desc);
	c->kind = CMD_KILL;
	c->job = 7;
	c->attempt = 1;
	c->epoch = 3;
	c->node = mo_strdup("n2");
	give(b, (struct agent_event){ .type = AE_REPLY, .reply = &r });
	mo_desc_done(&sync_reply_desc, &r);
	assert_string_equal(said(b), "");
	assert_string_equal(synced(b, 7, 1), "none");
}

static void test_stop_and_kill(void **state)
{
	struct bed *b = *state;

	running(b);
	orders(b, CMD_STOP, 7, 1);
	assert_string_equal(said(b), "stop:7.1 sync");
	assert_string_equal(synced(b, 7, 1), "stopping 3: started started running");
	orders(b, CMD_STOP, 7, 1);
	assert_string_equal(said(b), "sync");
	orders(b, CMD_KILL, 7, 1);
	assert_string_equal(said(b), "kill:7.1 sync");
	for (int i = 0; i < 4; i++)
		orders(b, CMD_KILL, 7, 1);
	assert_string_equal(said(b), "sync sync sync kill:7.1 sync"); /* sent again after 2 s */
	simple(b, AE_STEPD_UP, 7, 1);                                 /* and on a new connection */
	assert_string_equal(said(b), "kill:7.1");
}

static void test_stop_while_spooling(void **state)
{
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	orders(b, CMD_STOP, 7, 1);
	said(b);
	simple(b, AE_SPOOL_DONE, 7, 1);
	assert_string_equal(said(b), "fence:7.1");
	simple(b, AE_FENCE_DONE, 7, 1);
	assert_string_equal(said(b), "write:7.1:gone#1");
	note(b, 7, 1, 1, NOTE_GONE, MO_NONE);
	assert_string_equal(said(b), "news");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "gone 1: gone");
}

static void test_kill_of_what_never_came(void **state)
{
	struct bed *b = *state;

	up(b);
	orders(b, CMD_KILL, 7, 2);
	assert_string_equal(said(b), "fence:7.2 sync");
	assert_string_equal(synced(b, 7, 2), "gone 2: refused gone (stale)");
	acks(b, 7, 2, 2);
	said(b);
	orders(b, CMD_LAUNCH, 7, 2); /* the launch that was overtaken */
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 2), "gone 2: refused gone (stale)");
}

static void test_predecessor_must_be_gone(void **state)
{
	struct bed *b = *state;

	running(b);
	orders(b, CMD_LAUNCH, 7, 2);
	assert_string_equal(said(b), "fence:7.2 sync");
	assert_string_equal(synced(b, 7, 2), "gone 2: refused gone (busy)");
}

static void test_end_and_forget(void **state)
{
	struct bed *b = *state;

	running(b);
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	assert_string_equal(said(b), "news");
	note(b, 7, 1, 5, NOTE_EXIT, 5);
	note(b, 7, 1, 6, NOTE_GONE, MO_NONE);
	assert_string_equal(said(b), ""); /* one urgent message at a time */
	simple(b, AE_STEPD_LOST, 7, 1);
	assert_string_equal(said(b), ""); /* it ended by itself */
	struct got a = { .job = 7, .attempt = 1, .through = 4 };
	reply_full(b, false, 3, 1000, NULL, 0, &a, 1);
	assert_string_equal(said(b), "news");
	orders(b, CMD_FORGET, 7, 1);
	assert_string_equal(said(b), "sync"); /* gone is not acknowledged */
	acks(b, 7, 1, 6);
	said(b);
	orders(b, CMD_FORGET, 7, 1);
	assert_string_equal(said(b), "forget:7.1 sync");
	assert_string_equal(synced(b, 7, 1), "none");
	orders(b, CMD_FORGET, 7, 1);
	assert_string_equal(said(b), "sync");
}

static void test_unknown_step_is_kept(void **state)
{
	struct bed *b = *state;
	struct got a = { .job = 7, .attempt = 1, .unknown = true };

	running(b);
	note(b, 7, 1, 4, NOTE_GONE, MO_NONE);
	reply_full(b, true, 3, 500000, NULL, 0, &a, 1);
	said(b);
	orders(b, CMD_FORGET, 7, 1);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "gone 4: started started running gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_launch),
		T(test_gpus_given_back),
		T(test_gpus_not_given_back),
		T(test_killed_while_gpus_are_held),
		T(test_spool_fails),
		T(test_fence_stands_higher),
		T(test_fence_fails),
		T(test_stale_attempt),
		T(test_stale_epoch),
		T(test_earlier_boot),
		T(test_foreign_node),
		T(test_stop_and_kill),
		T(test_stop_while_spooling),
		T(test_kill_of_what_never_came),
		T(test_predecessor_must_be_gone),
		T(test_end_and_forget),
		T(test_unknown_step_is_kept),
	};
	return cmocka_run_group_tests_name("acore/steps_orders", tests, NULL, NULL);
}
