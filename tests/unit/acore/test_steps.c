/* Agent decisions in virtual time: spool answers, adoption, forwarding of notes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/entry.h"

struct bed { struct steps *core; int64_t now; struct steps_out out; };

static int setup(void **state) {
	struct bed *b = mo_alloc(sizeof(*b));

	b->core = steps_new("n1", "boot-1", "inst-1");
	b->now = 1000000;
	*state = b;
	return 0;
}

static int teardown(void **state) {
	struct bed *b = *state;

	steps_out_done(&b->out);
	steps_free(b->core);
	free(b);
	return 0;
}

/* Effects since the last call: "spool:7.1 start:7.1 write:7.1:exit@0 ...". */
static const char *said(struct bed *b) {
	static const char *const names[] = { "fence", "spool", "start", "stop", "kill", "sweep", "write", "scan", "query", "forget", "hello", "sync", "news" };
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < b->out.n_effects; i++) {
		const struct steps_effect *x = &b->out.effects[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", names[x->type]);
		if (x->job)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ":%lld.%lld", (long long)x->job, (long long)x->attempt);
		if (x->note)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ":%s#%lld", note_kind_names[x->note->kind], (long long)x->note->n);
		if (x->note && x->note->rank != MO_NONE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "@%lld", (long long)x->note->rank);
	}
	steps_out_done(&b->out);
	return text;
}

static void give(struct bed *b, struct steps_event e) {
	steps_step(b->core, &e, b->now, &b->out);
}

static void simple(struct bed *b, int type, int64_t job, int64_t attempt) {
	give(b, (struct steps_event){ .type = type, .job = job, .attempt = attempt, .ok = true });
}

static void note(struct bed *b, int64_t job, int64_t attempt, int64_t n, int kind, int64_t rank) {
	struct note note;

	mo_desc_init(&note_desc, &note);
	note.n = n;
	note.kind = kind;
	note.rank = rank;
	note.pid = rank == MO_NONE ? MO_NONE : 100 + rank;
	give(b, (struct steps_event){ .type = AE_NOTE, .job = job, .attempt = attempt, .note = &note });
	mo_desc_done(&note_desc, &note);
}

static void welcome_with(struct bed *b, int64_t epoch, int64_t job, int64_t attempt, int64_t through) {
	struct step_ack ack = { .job = job, .attempt = attempt, .through = through, .known = true };
	struct agent_welcome w = { .epoch = epoch, .beat_ms = 1000, .steps = &ack, .n_steps = job ? 1 : 0 };

	give(b, (struct steps_event){ .type = AE_WELCOME, .welcome = &w });
}

static void up(struct bed *b) {
	simple(b, AE_STARTED, 0, 0);
	welcome_with(b, 3, 0, 0, 0);
	said(b);
}

struct order { int kind; int64_t job, attempt, epoch; };
struct got { int64_t job, attempt, through; bool unknown; };

/* One reply after `took` microseconds. */
static void reply_full(struct bed *b, bool sync, int64_t epoch, int64_t took, const struct order *orders, size_t n_orders, const struct got *acks, size_t n_acks) {
	struct sync_reply r;
	struct launch l;

	mo_desc_init(&launch_desc, &l);
	l.first_rank = 4;
	l.n_local = 2;
	l.world = 8;
	mo_desc_init(&sync_reply_desc, &r);
	r.epoch = epoch;
	for (size_t i = 0; i < n_orders; i++) {
		struct command *c = MO_ADD(&r, commands, &command_desc);
		c->kind = orders[i].kind;
		c->job = l.job = orders[i].job;
		c->attempt = l.attempt = orders[i].attempt;
		c->epoch = orders[i].epoch ? orders[i].epoch : epoch;
		c->node = mo_strdup("n1");
		c->query = 5;
		c->signal = 15;
		c->grace_us = 1000;
		if (c->kind == CMD_LAUNCH)
			c->launch = mo_desc_dup(&launch_desc, &l);
		if (c->kind == CMD_SCAN)
			c->dir = mo_strdup("/c");
	}
	for (size_t i = 0; i < n_acks; i++) {
		struct step_ack *a = MO_ADD(&r, acks, &step_ack_desc);
		*a = (struct step_ack){ .job = acks[i].job, .attempt = acks[i].attempt, .through = acks[i].through, .known = !acks[i].unknown };
	}
	b->now += took;
	give(b, (struct steps_event){ .type = AE_REPLY, .ok = sync, .reply = &r });
	mo_desc_done(&sync_reply_desc, &r);
	mo_desc_done(&launch_desc, &l);
}

static void orders(struct bed *b, int kind, int64_t job, int64_t attempt) {
	struct order o = { .kind = kind, .job = job, .attempt = attempt };
	reply_full(b, true, 3, 500000, &o, 1, NULL, 0);
}

static void acks(struct bed *b, int64_t job, int64_t attempt, int64_t through) {
	struct got a = { .job = job, .attempt = attempt, .through = through };
	reply_full(b, true, 3, 500000, NULL, 0, &a, 1);
}

/* What the next sync says of a step: "state written:first-last". */
static const char *synced(struct bed *b, int64_t job, int64_t attempt) {
	static char text[256];
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	steps_sync(b->core, &s);
	snprintf(text, sizeof(text), "none");
	for (size_t i = 0; i < s.n_steps; i++) {
		const struct step_report *r = &s.steps[i];
		if (r->job != job || r->attempt != attempt)
			continue;
		snprintf(text, sizeof(text), "%s %lld:", step_state_names[r->state], (long long)r->written);
		for (size_t k = 0; k < r->n_notes; k++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", note_kind_names[r->notes[k].kind]);
		if (r->n_notes && r->notes[0].cause)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " (%s)", r->notes[0].cause);
	}
	mo_desc_done(&agent_sync_desc, &s);
	return text;
}

/* Job 7 attempt 1 with both ranks running. */
static void running(struct bed *b) {
	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	simple(b, AE_SPOOL_DONE, 7, 1);
	simple(b, AE_STEPD_UP, 7, 1);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_STARTED, 5);
	note(b, 7, 1, 3, NOTE_RUNNING, MO_NONE);
	said(b);
	reply_full(b, false, 3, 1000, NULL, 0, NULL, 0);
	said(b);
}

static void test_launch(void **state) {
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
	assert_string_equal(said(b), "fence:7.1 start:7.1");
	simple(b, AE_SPOOL_DONE, 7, 1);
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
	assert_int_equal(steps_through(b->core, 7, 1), 2);
}

static void test_spool_fails(void **state) {
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	said(b);
	give(b, (struct steps_event){ .type = AE_SPOOL_DONE, .job = 7, .attempt = 1, .text = "disk full" });
	assert_string_equal(said(b), "news");
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (spool)");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	acks(b, 7, 1, 2);
	assert_string_equal(said(b), "forget:7.1 sync");
	assert_string_equal(synced(b, 7, 1), "none");
	orders(b, CMD_LAUNCH, 7, 1);                   /* a late repetition must not start it after all */
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (stale)");
}

static void test_stale_attempt(void **state) {
	struct bed *b = *state;

	give(b, (struct steps_event){ .type = AE_FENCE, .job = 7, .attempt = 4 });
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

static void test_stale_epoch(void **state) {
	struct bed *b = *state;
	struct order old = { .kind = CMD_LAUNCH, .job = 8, .attempt = 1, .epoch = 2 }, kill = { .kind = CMD_KILL, .job = 7, .attempt = 1, .epoch = 2 };

	running(b);
	reply_full(b, true, 3, 500000, &old, 1, NULL, 0);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 8, 1), "gone 2: refused gone (stale)");
	reply_full(b, true, 2, 500000, &kill, 1, NULL, 0);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "running 3: started started running");
	struct got a = { .job = 7, .attempt = 1, .through = 3 };
	reply_full(b, true, 2, 500000, NULL, 0, &a, 1);   /* an older controller's word acknowledges nothing */
	assert_string_equal(synced(b, 7, 1), "running 3: started started running");
	said(b);
	reply_full(b, true, 9, 500000, NULL, 0, NULL, 0);
	assert_string_equal(said(b), "fence sync");
}

/* Told to the boot before: this one obeys nothing of it. */
static void test_earlier_boot(void **state) {
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
		give(b, (struct steps_event){ .type = AE_REPLY, .reply = &r });
		mo_desc_done(&sync_reply_desc, &r);
		assert_string_equal(said(b), same ? "spool:7.1" : "");
	}
}

static void test_foreign_node(void **state) {
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
	give(b, (struct steps_event){ .type = AE_REPLY, .reply = &r });
	mo_desc_done(&sync_reply_desc, &r);
	assert_string_equal(said(b), "");
	assert_string_equal(synced(b, 7, 1), "none");
}

static void test_stop_and_kill(void **state) {
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
	assert_string_equal(said(b), "sync sync sync kill:7.1 sync");   /* told again after 2 s */
	simple(b, AE_STEPD_UP, 7, 1);                                  /* and on a new connection */
	assert_string_equal(said(b), "kill:7.1");
}

static void test_stop_while_spooling(void **state) {
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	orders(b, CMD_STOP, 7, 1);
	said(b);
	simple(b, AE_SPOOL_DONE, 7, 1);
	assert_string_equal(said(b), "fence:7.1 write:7.1:gone#1");
	note(b, 7, 1, 1, NOTE_GONE, MO_NONE);
	assert_string_equal(said(b), "news");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 1), "gone 1: gone");
}

static void test_kill_of_what_never_came(void **state) {
	struct bed *b = *state;

	up(b);
	orders(b, CMD_KILL, 7, 2);
	assert_string_equal(said(b), "fence:7.2 sync");
	assert_string_equal(synced(b, 7, 2), "gone 2: refused gone (stale)");
	acks(b, 7, 2, 2);
	said(b);
	orders(b, CMD_LAUNCH, 7, 2);                   /* the launch that was overtaken */
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 2), "gone 2: refused gone (stale)");
}

static void test_predecessor_must_be_gone(void **state) {
	struct bed *b = *state;

	running(b);
	orders(b, CMD_LAUNCH, 7, 2);
	assert_string_equal(said(b), "sync");
	assert_string_equal(synced(b, 7, 2), "gone 2: refused gone (busy)");
}

static void test_end_and_forget(void **state) {
	struct bed *b = *state;

	running(b);
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	assert_string_equal(said(b), "news");
	note(b, 7, 1, 5, NOTE_EXIT, 5);
	note(b, 7, 1, 6, NOTE_GONE, MO_NONE);
	assert_string_equal(said(b), "");              /* one news at a time */
	simple(b, AE_STEPD_LOST, 7, 1);
	assert_string_equal(said(b), "");              /* it ended by itself */
	struct got a = { .job = 7, .attempt = 1, .through = 4 };
	reply_full(b, false, 3, 1000, NULL, 0, &a, 1);
	assert_string_equal(said(b), "news");
	orders(b, CMD_FORGET, 7, 1);
	assert_string_equal(said(b), "sync");          /* gone is not acknowledged */
	acks(b, 7, 1, 6);
	said(b);
	orders(b, CMD_FORGET, 7, 1);
	assert_string_equal(said(b), "forget:7.1 sync");
	assert_string_equal(synced(b, 7, 1), "none");
	orders(b, CMD_FORGET, 7, 1);
	assert_string_equal(said(b), "sync");
}

static void test_unknown_step_is_kept(void **state) {
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

static void test_stepd_dies(void **state) {
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
	simple(b, AE_TICK, 0, 0);                      /* what did not come back is written again */
	assert_string_equal(said(b), "write:7.1:exit#6@4 write:7.1:gone#7");
	note(b, 7, 1, 6, NOTE_EXIT, 4);
	note(b, 7, 1, 7, NOTE_GONE, MO_NONE);
	assert_string_equal(synced(b, 7, 1), "gone 7: started started running exit lost exit gone");
}

static void test_stepd_dies_after_all_exits(void **state) {
	struct bed *b = *state;

	running(b);
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	note(b, 7, 1, 5, NOTE_EXIT, 5);
	simple(b, AE_STEPD_LOST, 7, 1);
	said(b);
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "write:7.1:gone#6");
}

static void test_stepd_cannot_start(void **state) {
	struct bed *b = *state;

	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	simple(b, AE_SPOOL_DONE, 7, 1);
	said(b);
	give(b, (struct steps_event){ .type = AE_STEPD_LOST, .job = 7, .attempt = 1, .text = "moe-stepd: No such file" });
	simple(b, AE_SWEPT, 7, 1);
	assert_int_equal(b->out.n_effects, 3);
	assert_string_equal(b->out.effects[1].note->text, "moe-stepd: No such file");
	assert_string_equal(said(b), "sweep:7.1 write:7.1:lost#1 write:7.1:gone#2");
}

static void test_hung_is_reported_never_killed(void **state) {
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

static void spooled(struct bed *b, bool lock_held, bool boot_same) {
	struct launch l;

	mo_desc_init(&launch_desc, &l);
	l.first_rank = 4;
	l.n_local = 2;
	give(b, (struct steps_event){ .type = AE_SPOOLED_STEP, .job = 7, .attempt = 1, .lock_held = lock_held, .boot_same = boot_same, .launch = &l });
	mo_desc_done(&launch_desc, &l);
}

static void test_adopt_running(void **state) {
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
	assert_string_equal(said(b), "sweep:7.1 write:7.1:lost#4 write:7.1:exit#5@4 write:7.1:exit#6@5 write:7.1:gone#7");
}

static void test_adopt_both_died(void **state) {
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "fence:7.1 sweep:7.1 hello");
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "write:7.1:lost#2 write:7.1:exit#3@4 write:7.1:gone#4");
}

static void test_adopt_agent_died_while_writing(void **state) {
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_LOST, MO_NONE);
	simple(b, AE_STARTED, 0, 0);
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "fence:7.1 sweep:7.1 hello write:7.1:exit#3@4 write:7.1:gone#4");
}

static void test_adopt_gone(void **state) {
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 40, NOTE_EXIT, 4);               /* acknowledged segments were deleted */
	note(b, 7, 1, 41, NOTE_GONE, MO_NONE);
	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "fence:7.1 hello");
	welcome_with(b, 3, 7, 1, 40);
	assert_string_equal(synced(b, 7, 1), "gone 41: gone");
}

static void test_adopt_trimmed_journal(void **state) {
	struct bed *b = *state;

	spooled(b, false, true);
	note(b, 7, 1, 40, NOTE_SAMPLE, 4);
	simple(b, AE_STARTED, 0, 0);
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "fence:7.1 sweep:7.1 hello write:7.1:lost#41 write:7.1:exit#42@4 write:7.1:exit#43@5 write:7.1:gone#44");
}

static void test_adopt_never_started(void **state) {
	struct bed *b = *state;

	spooled(b, false, true);
	simple(b, AE_STARTED, 0, 0);
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(said(b), "fence:7.1 sweep:7.1 hello fence sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");          /* not before the sweep is done */
	simple(b, AE_SWEPT, 7, 1);
	assert_string_equal(said(b), "");
	assert_string_equal(synced(b, 7, 1), "spooled 0:");
	struct order old = { .kind = CMD_LAUNCH, .job = 7, .attempt = 1, .epoch = 2 };
	reply_full(b, true, 3, 500000, &old, 1, NULL, 0);
	assert_string_equal(said(b), "sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "start:7.1 sync");
	orders(b, CMD_LAUNCH, 7, 1);
	assert_string_equal(said(b), "sync");
}

static void test_adopt_never_started_and_cancelled(void **state) {
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

static void test_new_boot(void **state) {
	struct bed *b = *state;

	spooled(b, false, false);
	simple(b, AE_STARTED, 0, 0);
	assert_string_equal(said(b), "fence:7.1 forget:7.1 hello");
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(synced(b, 7, 1), "none");
	said(b);
	orders(b, CMD_LAUNCH, 7, 1);                   /* the boot id was the proof: never again */
	assert_string_equal(synced(b, 7, 1), "gone 2: refused gone (stale)");
}

static void test_link(void **state) {
	struct bed *b = *state;

	simple(b, AE_STARTED, 0, 0);
	said(b);
	simple(b, AE_NO_ANSWER, 0, 0);
	assert_string_equal(said(b), "");
	int64_t first = steps_deadline(b->core) - b->now;
	assert_true(first >= 100000 && first < 130000);
	b->now = steps_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	assert_string_equal(said(b), "hello");
	for (int i = 0; i < 10; i++) {
		simple(b, AE_NO_ANSWER, 0, 0);
		assert_true(steps_deadline(b->core) <= b->now + 1250000);
		b->now = steps_deadline(b->core);
		simple(b, AE_TICK, 0, 0);
		assert_string_equal(said(b), "hello");
	}
	welcome_with(b, 3, 0, 0, 0);
	assert_string_equal(said(b), "fence sync");
	b->now = steps_deadline(b->core);              /* a sync whose answer never comes */
	simple(b, AE_TICK, 0, 0);
	assert_string_equal(said(b), "");
	b->now = steps_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	assert_string_equal(said(b), "hello");
	welcome_with(b, 4, 0, 0, 0);
	assert_string_equal(said(b), "fence sync");
}

static void test_no_spin_while_commands_stay_due(void **state) {
	struct bed *b = *state;
	struct order kill = { .kind = CMD_KILL, .job = 7, .attempt = 1 };
	int syncs = 0;

	running(b);
	int64_t end = b->now + 5000000;
	while (b->now < end) {
		reply_full(b, true, 3, 1000, &kill, 1, NULL, 0);
		while (!strstr(said(b), "sync")) {
			b->now = steps_deadline(b->core);
			simple(b, AE_TICK, 0, 0);
		}
		syncs++;
	}
	assert_true(syncs < 5 * (64 + 50));    /* 64 without a pause and 50 paced ones a second */
}

static void test_news_lost(void **state) {
	struct bed *b = *state;

	running(b);
	note(b, 7, 1, 4, NOTE_EXIT, 4);
	assert_string_equal(said(b), "news");
	give(b, (struct steps_event){ .type = AE_NO_ANSWER, .ok = false });
	note(b, 7, 1, 5, NOTE_EXIT, 5);
	assert_string_equal(said(b), "news");

	struct agent_sync s;
	mo_desc_init(&agent_sync_desc, &s);
	note(b, 7, 1, 6, NOTE_SAMPLE, 4);
	assert_true(steps_news(b->core, &s));
	assert_int_equal(s.n_steps, 1);
	assert_int_equal(s.steps[0].n_notes, 5);       /* up to the last urgent one */
	mo_desc_done(&agent_sync_desc, &s);
	acks(b, 7, 1, 5);
	mo_desc_init(&agent_sync_desc, &s);
	assert_false(steps_news(b->core, &s));
	mo_desc_done(&agent_sync_desc, &s);
}

static size_t progress_in_sync(struct bed *b) {
	struct agent_sync s;
	size_t n = 0;

	mo_desc_init(&agent_sync_desc, &s);
	steps_sync(b->core, &s);
	for (size_t i = 0; i < s.n_steps; i++)
		n += s.steps[i].n_progress;
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static void test_progress(void **state) {
	struct bed *b = *state;
	struct rank_progress p = { .rank = 5, .iteration = 12, .step_ms = 3.0, .phase = PHASE_TRAIN };

	running(b);
	assert_int_equal(progress_in_sync(b), 0);
	give(b, (struct steps_event){ .type = AE_PROGRESS, .job = 7, .attempt = 1, .progress = &p });
	assert_int_equal(progress_in_sync(b), 1);
	assert_int_equal(progress_in_sync(b), 1);      /* until it is acknowledged */
	reply_full(b, true, 3, 500000, NULL, 0, NULL, 0);
	assert_int_equal(progress_in_sync(b), 0);
	simple(b, AE_NO_ANSWER, 0, 0);
	b->now = steps_deadline(b->core);
	simple(b, AE_TICK, 0, 0);
	welcome_with(b, 3, 7, 1, 3);
	assert_int_equal(progress_in_sync(b), 1);      /* a restarted controller hears all of it again */
}

static size_t scans_in_sync(struct bed *b) {
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	steps_sync(b->core, &s);
	size_t n = s.n_scans;
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static size_t scans_in_news(struct bed *b) {
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	bool any = steps_news(b->core, &s);
	size_t n = s.n_scans;
	assert_int_equal(any, n > 0 || s.n_steps > 0);
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static void test_scan(void **state) {
	struct bed *b = *state;
	struct scan_result r;

	up(b);
	mo_desc_init(&scan_result_desc, &r);
	r.job = 7;
	r.attempt = 2;
	orders(b, CMD_SCAN, 7, 2);
	orders(b, CMD_SCAN, 7, 2);
	assert_string_equal(said(b), "scan:7.2 sync sync");
	assert_int_equal(scans_in_sync(b), 0);
	assert_int_equal(scans_in_news(b), 0);
	give(b, (struct steps_event){ .type = AE_SCANNED, .scan = &r });
	assert_string_equal(said(b), "news");          /* an attempt waits for it */
	assert_int_equal(scans_in_news(b), 1);
	assert_int_equal(scans_in_news(b), 0);
	assert_int_equal(scans_in_sync(b), 1);         /* until it is acknowledged */
	orders(b, CMD_SCAN, 7, 2);
	assert_int_equal(scans_in_sync(b), 1);
	reply_full(b, true, 3, 500000, NULL, 0, NULL, 0);
	assert_int_equal(scans_in_sync(b), 0);
	said(b);
	orders(b, CMD_SCAN, 7, 2);
	assert_string_equal(said(b), "scan:7.2 sync");
	reply_full(b, true, 3, 500000, NULL, 0, NULL, 0);  /* not wanted any more */
	give(b, (struct steps_event){ .type = AE_SCANNED, .scan = &r });
	assert_int_equal(scans_in_sync(b), 0);
	mo_desc_done(&scan_result_desc, &r);
}

static void test_query_once(void **state) {
	struct bed *b = *state;

	up(b);
	orders(b, CMD_QUERY, 7, 1);
	orders(b, CMD_QUERY, 7, 1);
	assert_string_equal(said(b), "query:7.1 sync sync");
	b->now += 5000000;
	orders(b, CMD_QUERY, 7, 1);
	assert_string_equal(said(b), "query:7.1 sync");
}

static void test_notes_are_bounded(void **state) {
	struct bed *b = *state;
	struct agent_sync s;

	running(b);
	for (int64_t n = 4; n <= ENTRY_NOTES_KEPT_MAX + 100; n++)
		note(b, 7, 1, n, NOTE_SAMPLE, 4);
	note(b, 7, 1, ENTRY_NOTES_KEPT_MAX + 101, NOTE_EXIT, 4);
	for (int round = 0; ; round++) {
		int64_t last = 0;

		assert_true(round < 100);
		mo_desc_init(&agent_sync_desc, &s);
		steps_sync(b->core, &s);
		assert_true(s.steps[0].n_notes <= MO_NOTES_PER_SYNC);
		for (size_t i = 0; i < s.steps[0].n_notes; i++) {
			assert_true(s.steps[0].notes[i].n > last);
			last = s.steps[0].notes[i].n;
		}
		if (round == 0)
			assert_int_equal(s.steps[0].notes[0].kind, NOTE_STARTED);
		bool end = s.steps[0].n_notes && s.steps[0].notes[s.steps[0].n_notes - 1].kind == NOTE_EXIT;
		mo_desc_done(&agent_sync_desc, &s);
		if (end)
			break;
		acks(b, 7, 1, last);
		steps_out_done(&b->out);
	}
}

static void test_big_notes_fit_a_message(void **state) {
	struct bed *b = *state;
	struct note big;
	struct agent_sync s;

	running(b);
	mo_desc_init(&note_desc, &big);
	big.kind = NOTE_EXIT;
	char *line = mo_alloc(MO_LINE_MAX + 1);
	memset(line, 'x', MO_LINE_MAX);
	for (int i = 0; i < MO_TAIL_LINES; i++)
		mo_strs_add(&big.tail, &big.n_tail, line);
	for (int64_t n = 4; n < 104; n++) {
		big.n = n;
		give(b, (struct steps_event){ .type = AE_NOTE, .job = 7, .attempt = 1, .note = &big });
	}
	mo_desc_init(&agent_sync_desc, &s);
	steps_sync(b->core, &s);
	assert_true(s.steps[0].n_notes > 3 && s.steps[0].n_notes < 40);
	mo_desc_done(&agent_sync_desc, &s);
	mo_desc_done(&note_desc, &big);
	free(line);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_launch), T(test_spool_fails), T(test_stale_attempt), T(test_stale_epoch), T(test_earlier_boot), T(test_foreign_node), T(test_stop_and_kill),
		T(test_stop_while_spooling), T(test_kill_of_what_never_came), T(test_predecessor_must_be_gone), T(test_end_and_forget),
		T(test_unknown_step_is_kept), T(test_stepd_dies), T(test_stepd_dies_after_all_exits), T(test_stepd_cannot_start),
		T(test_hung_is_reported_never_killed), T(test_adopt_running), T(test_adopt_both_died), T(test_adopt_agent_died_while_writing),
		T(test_adopt_gone), T(test_adopt_trimmed_journal), T(test_adopt_never_started), T(test_adopt_never_started_and_cancelled),
		T(test_new_boot), T(test_link), T(test_no_spin_while_commands_stay_due), T(test_news_lost), T(test_progress), T(test_scan),
		T(test_query_once), T(test_notes_are_bounded), T(test_big_notes_fit_a_message),
	};
	return cmocka_run_group_tests_name("acore/steps", tests, NULL, NULL);
}
