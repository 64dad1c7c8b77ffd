/* See agent_bed.h. */
#include "tests/unit/acore/agent_bed.h"

#include "lib/model/launch.h"
#include "lib/model/recipe.h"

int bed_setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	b->core = agent_core_new("n1", "boot-1", "inst-1");
	b->now = 1000000;
	*state = b;
	return 0;
}

int bed_teardown(void **state)
{
	struct bed *b = *state;

	agent_out_done(&b->out);
	agent_core_free(b->core);
	free(b);
	return 0;
}

const char *said(struct bed *b)
{
	static const char *const names[] = {
		"fence",  "spool",    "release",  "start",      "stop",        "kill",  "sweep",
		"write",  "scan",     "image",    "image_stop", "images_tidy", "query", "reread",
		"motion", "recorder", "activity", "forget",     "hello",       "sync",  "news"
	};
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < b->out.n_effects; i++) {
		const struct agent_effect *x = &b->out.effects[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "",
				      names[x->type]);
		if (x->job)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ":%lld.%lld",
					      (long long)x->job, (long long)x->attempt);
		if (x->note)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ":%s#%lld",
					      note_kind_names[x->note->kind],
					      (long long)x->note->n);
		if (x->note && x->note->rank != MO_NONE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "@%lld",
					      (long long)x->note->rank);
	}
	agent_out_done(&b->out);
	return text;
}

void give(struct bed *b, struct agent_event e)
{
	agent_core_decide(b->core, &e, b->now, &b->out);
}

void simple(struct bed *b, int type, int64_t job, int64_t attempt)
{
	give(b, (struct agent_event){ .type = type, .job = job, .attempt = attempt, .ok = true });
}

void note(struct bed *b, int64_t job, int64_t attempt, int64_t n, int kind, int64_t rank)
{
	struct note note;

	mo_desc_init(&note_desc, &note);
	note.n = n;
	note.kind = kind;
	note.rank = rank;
	note.pid = rank == MO_NONE ? MO_NONE : 100 + rank;
	give(b, (struct agent_event){
			.type = AE_NOTE, .job = job, .attempt = attempt, .note = &note });
	mo_desc_done(&note_desc, &note);
}

void welcome_with(struct bed *b, int64_t epoch, int64_t job, int64_t attempt, int64_t through)
{
	struct step_ack ack = { .job = job, .attempt = attempt, .through = through, .known = true };
	struct agent_welcome w = {
		.epoch = epoch, .beat_ms = 1000, .steps = &ack, .n_steps = job ? 1 : 0
	};

	give(b, (struct agent_event){ .type = AE_WELCOME, .welcome = &w });
}

void up(struct bed *b)
{
	simple(b, AE_STARTED, 0, 0);
	welcome_with(b, 3, 0, 0, 0);
	said(b);
}

void reply_full(struct bed *b, bool sync, int64_t epoch, int64_t took, const struct order *orders,
		size_t n_orders, const struct got *acks, size_t n_acks)
{
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
		if (c->kind == CMD_LAUNCH && orders[i].gpus)
			mo_ints_add(&c->launch->gpus, &c->launch->n_gpus, 0);
		if (c->kind == CMD_SCAN) {
			c->dir = mo_strdup("/c");
			c->order = ORDER_SCAN;
			c->id = c->attempt;
		}
	}
	for (size_t i = 0; i < n_acks; i++) {
		struct step_ack *a = MO_ADD(&r, acks, &step_ack_desc);
		*a = (struct step_ack){ .job = acks[i].job,
					.attempt = acks[i].attempt,
					.through = acks[i].through,
					.known = !acks[i].unknown };
	}
	b->now += took;
	give(b, (struct agent_event){ .type = AE_REPLY, .ok = sync, .reply = &r });
	mo_desc_done(&sync_reply_desc, &r);
	mo_desc_done(&launch_desc, &l);
}

void orders(struct bed *b, int kind, int64_t job, int64_t attempt)
{
	struct order o = { .kind = kind, .job = job, .attempt = attempt };
	reply_full(b, true, 3, 500000, &o, 1, NULL, 0);
}

void orders_with_gpus(struct bed *b, int64_t job, int64_t attempt)
{
	struct order o = { .kind = CMD_LAUNCH, .job = job, .attempt = attempt, .gpus = true };
	reply_full(b, true, 3, 500000, &o, 1, NULL, 0);
}

void acks(struct bed *b, int64_t job, int64_t attempt, int64_t through)
{
	struct got a = { .job = job, .attempt = attempt, .through = through };
	reply_full(b, true, 3, 500000, NULL, 0, &a, 1);
}

const char *synced(struct bed *b, int64_t job, int64_t attempt)
{
	static char text[256];
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	snprintf(text, sizeof(text), "none");
	for (size_t i = 0; i < s.n_steps; i++) {
		const struct step_report *r = &s.steps[i];
		if (r->job != job || r->attempt != attempt)
			continue;
		snprintf(text, sizeof(text), "%s %lld:", step_state_names[r->state],
			 (long long)r->written);
		if (r->waits)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " waits (%s)",
				 r->waits);
		for (size_t k = 0; k < r->n_notes; k++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s",
				 note_kind_names[r->notes[k].kind]);
		if (r->n_notes && r->notes[0].cause)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " (%s)",
				 r->notes[0].cause);
	}
	mo_desc_done(&agent_sync_desc, &s);
	return text;
}

void running(struct bed *b)
{
	up(b);
	orders(b, CMD_LAUNCH, 7, 1);
	simple(b, AE_SPOOL_DONE, 7, 1);
	simple(b, AE_FENCE_DONE, 7, 1);
	simple(b, AE_STEPD_UP, 7, 1);
	note(b, 7, 1, 1, NOTE_STARTED, 4);
	note(b, 7, 1, 2, NOTE_STARTED, 5);
	note(b, 7, 1, 3, NOTE_RUNNING, MO_NONE);
	said(b);
	reply_full(b, false, 3, 1000, NULL, 0, NULL, 0);
	said(b);
}
