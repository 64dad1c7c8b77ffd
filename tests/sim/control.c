/* The controller among the nodes: messages reach it and are answered, it is killed, stopped, and
 * begins again. It is production's (moed.h); here is who waits for what. What it stored is read
 * from its store after each of its turns and reaches the shadow core record by record: that core is
 * the restarted controller, and must be equal to it. */
#include "tests/sim/moed.h"
#include "tests/sim/before.h"
#include "tests/sim/check.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/journal.h"
#include "daemon/manager.h"
#include "tests/unit/seams/world.h"

/* Changes of the world (of the disk, messages) within a few turns. */
#define CHANGES 40

/* Who waits for an answer. */
struct asked {
	int64_t request, instance;
	int kind, node;
	bool cut, foreign;
	struct op *op;
	char token[64];
};

void message_free(struct message *m)
{
	free(m->text);
	free(m->token);
	free(m);
}

void answer_free(struct answer *a)
{
	free(a->text);
	free(a);
}

static struct answer *answer_new(const struct asked *q, int status)
{
	struct answer *a = mo_alloc(sizeof(*a));

	a->kind = q->kind;
	a->node = q->node;
	a->request = q->request;
	a->instance = q->instance;
	a->status = status;
	return a;
}

/* The controller's end of the connection is gone: people try again; agents learn of it at once
 * (reset or refused), or never when the machine is dead. */
static void broken(struct sim *s, const struct asked *q)
{
	if (q->kind == M_USER)
		sim_at(s, s->now + S, K_RETRY, 0, 0, q->op, NULL);
	else if (s->ctl.dark)
		sim_trouble(s, q->node);
	else
		wire_answer(s, answer_new(q, 0));
}

static struct asked *asked(const struct sim *s, int64_t request)
{
	for (size_t i = 0; i < s->ctl.n_asked; i++)
		if (s->ctl.asked[i].request == request)
			return &s->ctl.asked[i];
	return NULL;
}

const char *control_asked(const struct sim *s, int64_t request)
{
	const struct asked *q = asked(s, request);

	return q ? q->token : NULL;
}

void control_came_with(struct sim *s, int64_t request, const char *token_id)
{
	struct asked *q = asked(s, request);

	snprintf(q->token, sizeof(q->token), "%s", token_id);
}

/* ---- what it said ---- */

static int64_t job_of(const struct sim *s, const struct op *op)
{
	const struct state *st = core_state(s->ctl.shadow);
	_cleanup_(mo_freep) char *key = mo_printf("k%lld", (long long)op->key);

	for (size_t i = 0; i < st->n_jobs; i++)
		if (mo_streq(st->jobs[i]->spec.idempotency_key, key))
			return st->jobs[i]->id;
	return MO_NONE;
}

static void said(struct sim *s, const struct said *a)
{
	struct asked *q = asked(s, a->request), was;
	struct answer *to;

	if (!q)
		sim_violation(s, "message %lld is answered twice", (long long)a->request);
	was = *q;
	*q = s->ctl.asked[--s->ctl.n_asked];
	if (was.cut && a->status < 400)
		sim_violation(s, "a piece of a message is taken for one: %d", a->status);
	if (was.foreign && a->status < 400)
		sim_violation(s, "%s is let in with the token of another: %d",
			      s->nodes[was.node].name, a->status);
	if (was.kind == M_USER) {
		if (sim_fault(s, F_LOSE_REPLY, 0.02))
			sim_at(s, s->now + 2 * S, K_RETRY, 0, 0, was.op, NULL);
		else
			user_answer(s, was.op, a->status,
				    was.op->type == IN_SUBMIT ? job_of(s, was.op) : MO_NONE);
		return;
	}
	to = answer_new(&was, a->status);
	to->text = mo_strndup(a->text, a->n);
	to->n = a->n;
	wire_answer(s, to);
}

/* ---- what it stored ---- */

/* What changed since a user went back behind it may be the work of an attempt that was not heard to
 * its end: a controller that takes it for that may resume from it, whoever repairs it. */
static void written_unheard(struct sim *s, int64_t job)
{
	const struct job *j = job_find(core_state(s->ctl.shadow), job);
	struct truth *t = sim_job(s, job);

	for (size_t i = 0; j && j->unheard && i < t->n_files; i++) {
		const struct checkpoint *c = checkpoint_find(j, t->files[i].iteration);

		t->files[i].given_up &= !c || c->state == CKPT_SUPERSEDED;
	}
}

/* A node that has just lost its power, and is not silent for long enough, is given ranks. */
static void placed_on_lost(struct sim *s, const struct record *r)
{
	for (size_t i = 0; i < r->place->n_places; i++)
		if (!s->nodes[sim_node(s, r->place->places[i].node)].power)
			sim_harm(s, r->job, r->attempt);
}

static void disown(struct sim *s, const struct record *r)
{
	struct simstep *st = step_of(s, sim_node(s, r->node), r->job, r->attempt);

	sim_harm(s, r->job, r->attempt);
	if (st)
		s->fault_counts[F_FENCED_ALIVE] += proc_disown(s, st);
}

static void take(struct sim *s, const struct record *r)
{
	const struct job *j =
		r->type == REC_JOB ? job_find(core_state(s->ctl.shadow), r->job) : NULL;

	if (j && j->state != r->transition->state)
		s->move_counts[j->state * _JOB_STATE_N + r->transition->state]++;
	check_health(s, r);
	check_history(s, r);
	if (r->type == REC_PLACE)
		sim_job(s, r->job)->unheard = job_find(core_state(s->ctl.shadow), r->job)->unheard;
	if (r->type == REC_GONE && mo_starts_with(r->gone->how, "fenced by"))
		disown(s, r);
	if (r->type == REC_STRANGE && r->strange->fenced)
		past_disown(s, r->node);
	if (core_update(s->ctl.shadow, r) != 0)
		sim_violation(s, "a stored record of type %s is refused at replay",
			      record_type_names[r->type]);
	if (r->type == REC_SCAN)
		written_unheard(s, r->job);
	if (r->type == REC_PLACE)
		placed_on_lost(s, r);
	wall_check(s, r);
}

struct stored {
	struct sim *sim;
	struct core_out out; /* of which there are only the records */
};

static int on_stored(void *arg, int64_t seq, const char *text, size_t n)
{
	struct stored *to = arg;
	struct sim *s = to->sim;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct record *r = MO_GROW(to->out.records, to->out.n_records);

	if (seq != s->ctl.seq + 1)
		sim_violation(s, "record %lld follows %lld", (long long)seq, (long long)s->ctl.seq);
	mo_desc_init(&record_desc, r);
	if (journal_read_record(s->ctl.journal, text, n, r, &err) < 0)
		sim_violation(s, "record %lld does not read back: %s", (long long)seq, err.text);
	take(s, r);
	s->ctl.seq = seq;
	return 0;
}

/* How many records there were that the shadow had not. A disk of which one bit is another may say
 * nothing any more, but never less. */
static size_t take_stored(struct sim *s)
{
	struct stored to = { .sim = s };
	int64_t last = store_seq(moed()->store);

	if (last < s->ctl.seq)
		sim_violation(s, "record %lld was stored, and the store ends with %lld",
			      (long long)s->ctl.seq, (long long)last);
	if (last == s->ctl.seq)
		return 0;
	if (store_read_raw(moed()->store, s->ctl.seq + 1, on_stored, &to, NULL) < 0 &&
	    !s->ctl.flipped)
		sim_violation(s, "what was stored cannot be read");
	check_records(s, &to.out);
	size_t n = to.out.n_records;
	core_out_done(&to.out);
	return n;
}

/* ---- its life ---- */

/* Its requests are open, and what it has not said yet is never said. Of its disk one bit may be
 * another from then on, but not when it lost power too, and did not start since: by what it knows a
 * log that ends too early (lib/store/log_whole.h) is not synced. */
static void die(struct sim *s, int64_t down_us)
{
	struct asked *open = TAKE_PTR(s->ctl.asked);
	size_t n = s->ctl.n_asked;

	sim_trace(s, "controller dies for %lld ms", (long long)(down_us / MS));
	s->ctl.dark = !s->ctl.flipped && sim_fault(s, F_CONTROLLER_HOST, 0.15);
	s->ctl.up = false;
	s->ctl.down_since = s->now;
	s->ctl.core = NULL;
	s->ctl.n_asked = 0;
	moed_close(s, s->ctl.dark);
	s->ctl.unmarked |= s->ctl.dark;
	if (s->n_backups && !s->ctl.unmarked && !s->ctl.restoring &&
	    sim_fault(s, F_BIT_FLIPPED, 0.05))
		s->ctl.flipped |= moed_flip(s);
	for (size_t i = 0; i < n; i++)
		broken(s, &open[i]);
	free(open);
	sim_at(s, s->now + down_us, K_CONTROLLER_UP, 0, 0, NULL, NULL);
}

void control_crash(struct sim *s, int64_t down_us)
{
	if (!s->ctl.up)
		return;
	check_equal(s);
	die(s, down_us);
}

/* Of a flipped bit it says so and ends: who reads that puts the newest backup back. */
static void refuse(struct sim *s)
{
	s->fault_counts[F_BIT_TOLD]++;
	past_newest(s);
	die(s, sim_between(s, S, 20 * S));
}

/* After anything that it did. */
static void look(struct sim *s)
{
	bool died = moed_ended();
	struct said *list = NULL;
	size_t n_said = moed_said(&list), n_stored = take_stored(s);

	for (size_t i = 0; i < n_said; i++) {
		said(s, &list[i]);
		free(list[i].text);
	}
	free(list);
	if (died && s->ctl.flipped && !seam_dead()) {
		refuse(s);
	} else if (died) {
		s->fault_counts[n_said     ? F_CRASH_BETWEEN_REPLIES
				: n_stored ? F_CRASH_BEFORE_REPLY
					   : F_CRASH_BEFORE_STORE]++;
		die(s, sim_between(s, 50 * MS, 12 * S));
	} else {
		wall_look(s);
	}
}

/* The one that ended was of the release before. */
static void upgrade(struct sim *s)
{
	if (s->ctl.instance == 0 || s->ctl.upgraded || s->ctl.restoring || s->ctl.flipped ||
	    !sim_fault(s, F_UPGRADED, 0.2))
		return;
	sim_trace(s, "the controller is upgraded");
	s->ctl.upgraded = true;
	before_store(s);
}

void control_start(struct sim *s)
{
	bool other_machine = s->ctl.dark || !s->ctl.shadow;
	int64_t down_since = s->ctl.down_since;

	if (s->ctl.up)
		return;
	if (!s->ctl.shadow) {
		s->ctl.shadow = sim_core(s);
		s->ctl.journal = journal_new();
		moed_begin(s, NULL);
	}
	upgrade(s);
	past_restore(s);
	s->ctl.up = true;
	s->ctl.dark = false;
	s->ctl.up_since = s->now;
	s->ctl.instance++;
	wall_start(s, other_machine);
	sim_trace(s, "controller starts");
	check_promises(s);
	if (s->faults && sim_chance(s, 0.05 * s->plan.rate[KIND_CONTROLLER]))
		seam_crash_after(1 + sim_random(s) % CHANGES);
	bool opened = moed_open(s);
	s->ctl.core = moed()->core;
	s->fault_counts[F_CRASH_STARTING] += seam_dead();
	if (!opened && seam_dead()) {
		die(s, sim_between(s, 50 * MS, 12 * S));
		/* what the next one finds is of the one before still */
		s->ctl.down_since = down_since;
		return;
	}
	if (!opened) {
		refuse(s);
		return;
	}
	s->ctl.unmarked = false;
	look(s);
	if (s->ctl.up)
		check_equal(s);
}

void control_message(struct sim *s, struct message *m)
{
	const struct asked q = { m->request, m->instance, m->kind, m->node,
				 m->cut,     m->foreign,  m->op,   "" };

	if (!s->ctl.up) {
		broken(s, &q);
		message_free(m);
		return;
	}
	if (s->ctl.paused_until > s->now) {
		sim_at(s, s->ctl.paused_until, K_MESSAGE, 0, 0, m, NULL);
		return;
	}
	*MO_GROW(s->ctl.asked, s->ctl.n_asked) = q;
	moed_message(s, m);
	message_free(m);
	look(s);
}

/* Of this process, and not while it stands. */
static bool its_own(struct sim *s, const struct queued *e)
{
	if (!s->ctl.up || e->a != s->ctl.instance)
		return false;
	if (s->ctl.paused_until <= s->now)
		return true;
	sim_at(s, s->ctl.paused_until, e->kind, e->a, e->b, e->p, e->q);
	return false;
}

void control_turn(struct sim *s, const struct queued *e)
{
	if (!its_own(s, e))
		return;
	s->n_turns++;
	if (s->faults && sim_chance(s, 0.0002 * s->plan.rate[KIND_CONTROLLER]))
		seam_crash_after(1 + sim_random(s) % CHANGES);
	moed_turn(s);
	look(s);
}

void control_timer(struct sim *s, const struct queued *e)
{
	if (!its_own(s, e))
		return;
	moed_timer(s, e);
	look(s);
}

void control_spare(struct sim *s)
{
	seam_alive();
}

void control_free(struct sim *s)
{
	moed_close(s, false);
	moed_done();
	free(s->ctl.asked);
	s->ctl.journal = journal_free(s->ctl.journal);
	core_free(s->ctl.shadow);
}
