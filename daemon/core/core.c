/* The controller's core, seen from outside (core.h): one input in, records and effects out.
 *
 * A turn is the shell's (daemon/turn.c), the simulator's or a test's: core_decide() for each input,
 * then core_settle(), all with one time, which does not go back but by a clock input.
 *   1. dispatch   the input goes to its rule, which emits records (rules/turn.c applies each at
 *                 once) and effects
 *   2. act_jobs   job_act() visits the jobs that these touched, until nothing more follows: what is
 *                 missing follows from the state, so nothing is remembered as "still to be done"
 *   3. act        once for all inputs: fleet_drain() and schedule() too, which look at the queue,
 *                 until a pass adds nothing
 *   4. wake       nodes that have a command due now
 *
 * What never happens: I/O, a clock that is read, memory that an input may ask for without limit, a
 * change of the state past update/update.c. Run twice, the rules emit nothing the second time. A
 * turn without records costs no more than the input's own look-ups. What the input could have
 * caused is a reply; an assertion here says that a rule is wrong.
 *
 * The shell stores all records of a turn before it carries out any effect, so a core that dies in
 * between is as if the input had not come. */
#include "daemon/core/core.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/rules/commands.h"
#include "daemon/core/rules/config.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/exec.h"
#include "daemon/core/rules/fabric.h"
#include "daemon/core/rules/fleet.h"
#include "daemon/core/rules/fleet_verbs.h"
#include "daemon/core/rules/hang.h"
#include "daemon/core/rules/history.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/rules/jobs.h"
#include "daemon/core/rules/power.h"
#include "daemon/core/rules/prefetch.h"
#include "daemon/core/rules/schedule.h"
#include "daemon/core/rules/silence.h"
#include "daemon/core/rules/terms.h"
#include "daemon/core/rules/tokens.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/verbs.h"
#include "daemon/core/state/live.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/update/index.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/slots.h"
#include "daemon/core/update/update.h"
#include "daemon/core/update/wake.h"

const struct core_config core_config_default = {
	.port_min = 20000,
	.port_max = 29999,
	.beat_us = 1000000,
	.suspect_us = 2200000,
	.down_us = 10000000,
	.exit_wait_us = 300LL * 1000000,
	.learn_us = 7 * 86400LL * 1000000,
	.history_us = 90 * 86400LL * 1000000,
	.pull_parallel = 32,
	.hang_percent = 100,
};

struct core *core_new(const struct core_config *config)
{
	struct core *c = mo_alloc(sizeof(*c));

	c->config = *config;
	mo_desc_init(&state_desc, &c->owned);
	c->owned.epoch = 0;
	c->owned.next_job = 1;
	c->owned.next_port = config->port_min;
	c->owned.next_event_seq = 1;
	c->owned.time = 0;
	c->liveness_at = c->terms_at = c->jobs_at = c->hangs_at = c->history_at = INT64_MAX;
	core_reindex(c);
	return c;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	core_lives_clear(c);
	free(c->owned.holders);
	mo_desc_done(&state_desc, &c->owned);
	free(c->idem_heads);
	talkers_clear(c);
	prefetches_clear(c);
	free(c->unfinished);
	claims_clear(&c->names);
	claims_clear(&c->dirs);
	free(c->ending);
	queue_clear(&c->queue);
	shared_pool_done(&c->shared);
	free(c->texts);
	free(c->retained);
	free(c->fresh);
	free(c->dirty);
	free(c->wake_jobs);
	free(c->wake_nodes);
	free(c);
}

void core_signatures(struct core *c, const struct classifier *signatures)
{
	c->signatures = signatures;
}

const struct state *core_state(const struct core *c)
{
	return &c->state;
}

void core_load(struct core *c, struct state *state)
{
	core_lives_clear(c);
	free(c->owned.holders);
	mo_desc_done(&state_desc, &c->owned);
	c->owned = *state;
	c->owned.lives = NULL;
	c->owned.beats = NULL;
	c->owned.n_beats = 0;
	c->owned.holders = NULL;
	c->owned.n_holders = 0;
	mo_desc_init(&state_desc, state);
	core_reindex(c);
}

/* Once, at the first start of a restored state. */
static void restored_event(struct turn *t)
{
	const struct state *s = &t->core->state;
	size_t tokens = 0;

	for (size_t i = 0; i < s->n_tokens; i++)
		tokens += !s->tokens[i].revoked;
	event_emit(t, EVENT_CONTROLLER_RESTORED, MO_NONE, NULL, MO_NONE, MO_NONE, NULL,
		   "the state was restored from a backup with jobs below j-%lld; new jobs begin "
		   "with j-%lld. What happened after the backup is not known: %zu tokens are valid "
		   "as they were then, also those revoked since (moectl token list); steps that "
		   "the backup does not know are kept (moectl doctor names them; moectl resolve)",
		   (long long)s->restored_jobs, (long long)s->next_job, tokens);
}

static void start(struct turn *t)
{
	struct core *c = t->core;
	_cleanup_(mo_freep) char *epoch = epoch_text(c->state.epoch + 1);
	bool restored = c->state.restored_jobs != MO_NONE && c->state.restored_wait == MO_NONE;
	struct record r;

	record_init(&r, REC_CONTROLLER);
	r.controller->epoch = c->state.epoch + 1;
	if (restored)
		r.controller->restored_wait = t->now + RESTORED_WAIT_DOWNS * c->config.down_us;
	turn_emit(t, &r);
	if (restored)
		restored_event(t);
	silence_begin(t);
	c->terms_at = c->heard_from = t->now;
	history_begin(t);
	for (size_t i = 0; i < c->n_unfinished; i++) {
		const struct job *j = job_find(&c->state, c->unfinished[i]);

		core_touch(c, j->id);
		if (j->config.due)
			config_ask(t, j);
	}
	c->queue_dirty = true;
	health_cordon_all(t);
	event_emit(t, EVENT_CONTROLLER_STARTED, MO_NONE, NULL, MO_NONE, MO_NONE, NULL,
		   "controller started, %s", epoch);
}

/* What only this run remembers moves with time as the state does. */
static void live_shift(struct live *l, int64_t shift)
{
	l->candidate_at += shift;
	l->store_until += shift;
	l->tell_until += shift;
	l->hellos_until += shift;
	l->sensors_at += shift;
	tellers_shift(l, shift);
	for (size_t i = 0; i < l->n_sensors; i++)
		l->sensors[i].at += shift;
	for (size_t i = 0; i < l->n_nics; i++)
		l->nics[i].at += shift;
}

static void clock_read(struct turn *t)
{
	const struct in_clock *in = t->input->clock;
	struct core *c = t->core;
	struct record r;

	record_init(&r, REC_CLOCK);
	r.clock->boot_id = mo_strdup(in->boot_id);
	r.clock->boottime_us = in->boottime_us;
	r.clock->synchronised = in->synced;
	r.clock->shift_us = in->shift_us;
	turn_emit(t, &r);
	if (in->shift_us) {
		core_live_shift(c, in->shift_us);
		for (size_t i = 0; i < c->state.n_nodes; i++)
			live_shift(c->lives[i], in->shift_us);
		c->tell_until += in->shift_us;
		c->talkers_until += in->shift_us;
		prefetches_shift(c, in->shift_us);
		history_begin(t);
		if (c->liveness_at != INT64_MAX)
			c->liveness_at += in->shift_us;
		c->terms_at = c->jobs_at = c->hangs_at = c->heard_from = t->now;
	}
	if (in->told)
		event_emit(t, EVENT_CONTROLLER_CLOCK, MO_NONE, NULL, MO_NONE, MO_NONE, NULL, "%s",
			   in->told);
}

static void store_reported(struct turn *t)
{
	const struct in_store *in = t->input->store;
	const struct event_about *about = event_about(in->event);

	assert(about);
	event_emit(t, (enum event_type)(about - event_registry), MO_NONE, in->node, MO_NONE,
		   MO_NONE, NULL, "%s", in->message ? in->message : "");
}

static void dispatch(struct turn *t)
{
	switch (t->input->type) {
	case IN_START: start(t); break;
	case IN_CLOCK: clock_read(t); break;
	case IN_LATE: fleet_late(t->core, t->input->late->late_us, t->now); break;
	case IN_TICK: break;
	case IN_SUBMIT: job_submit(t); break;
	case IN_CANCEL: job_verb(t, V_CANCEL); break;
	case IN_PAUSE: job_verb(t, V_PAUSE); break;
	case IN_RESUME: job_verb(t, V_RESUME); break;
	case IN_RESTART: job_verb(t, V_RESTART); break;
	case IN_DRAIN:
	case IN_UNDRAIN:
	case IN_ACK:
	case IN_FENCE: fleet_verb(t); break;
	case IN_HELLO: fleet_hello(t); break;
	case IN_SYNC:
	case IN_URGENT: fleet_sync(t); break;
	case IN_TOKEN:
	case IN_TOKEN_REVOKE:
	case IN_TOKEN_USED: token_verb(t); break;
	case IN_REFUSED:
		audit_emit(t, EVENT_AUDIT_REFUSED, NULL, "%s", t->input->refused->what);
		break;
	case IN_CONFIG: config_judged(t); break;
	case IN_RESOLVE: incarnation_resolve(t); break;
	case IN_STORE: store_reported(t); break;
	case IN_EXEC: job_exec(t); break;
	case IN_PREFETCH: prefetch_begin(t); break;
	case IN_IMAGES_REMOVE: images_remove(t); break;
	case IN_POWER: power_answered(t); break;
	case IN_FABRIC: job_fabric(t); break;
	default: assert(!"input type");
	}
}

static bool act_jobs(struct turn *t)
{
	struct core *c = t->core;
	bool more = false;

	while (c->n_dirty) {
		int64_t id = c->dirty[--c->n_dirty];

		while (job_act(t, id))
			more = true;
	}
	return more;
}

/* What is missing is derived from the state until a pass adds nothing. */
static void act(struct turn *t)
{
	struct core *c = t->core;
	bool more;

	do {
		more = act_jobs(t);
		if (c->queue_dirty)
			more |= fleet_drain(t);
		if (c->queue_dirty || c->n_fresh)
			more |= schedule(t);
	} while (more || c->n_dirty || c->queue_dirty);
}

void core_decide(struct core *c, const struct core_input *in, int64_t now, struct core_out *out)
{
	struct turn t = { .core = c, .now = now, .out = out, .input = in };

	assert(in->type >= 0 && in->type < _IN_N && out);
	dispatch(&t);
	if (in->type == IN_CLOCK && !c->heard_from)
		return; /* the clock of a start, before it: nobody was heard since the last one */
	if (in->type == IN_TICK && now >= c->liveness_at) {
		fleet_silence(&t);
		power_pass(&t);
	}
	if (in->type == IN_TICK && now >= c->terms_at)
		terms_pass(&t);
	if (in->type == IN_TICK && now >= c->history_at)
		history_pass(&t);
	if (now >= c->jobs_at) {
		c->jobs_at = INT64_MAX;
		for (size_t i = 0; i < c->n_unfinished; i++)
			core_touch(c, c->unfinished[i]);
		c->queue_dirty = true;
	}
	if (now >= c->hangs_at)
		hang_judge_all(c);
	act_jobs(&t);
}

void core_settle(struct core *c, int64_t now, struct core_out *out)
{
	struct turn t = { .core = c, .now = now, .out = out };

	if (!c->heard_from)
		return; /* nothing but the clock of a start, before it */
	act(&t);
	slots_refresh(c);
	commands_wake(&t);
	/* the next turn begins with nothing left to visit */
	assert(c->n_dirty == 0 && !c->queue_dirty && c->n_wake_jobs == 0 && c->n_wake_nodes == 0);
}

int64_t core_deadline(const struct core *c)
{
	return MO_MIN(MO_MIN(c->liveness_at, MO_MIN(c->terms_at, c->jobs_at)),
		      MO_MIN(c->hangs_at, c->history_at));
}
