/* The controller's turn: an event becomes records and effects; then the rules (job_act, schedule, drains) look at what the records touched until nothing is missing.
 * Invariants: state changes only in update.c; the rules are idempotent (run twice they emit nothing); a turn without records costs only the event's own look-ups. */
#include "daemon/core/inner.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/state/health.h"
#include "daemon/core/rules/incarnation.h"
#include "lib/model/limits.h"

const struct core_config core_config_default = {
	.port_min = 20000, .port_max = 29999,
	.beat_us = 1000000, .suspect_us = 2200000, .down_us = 10000000,
	.exit_wait_us = 300LL * 1000000,
	.learn_us = 7 * 86400LL * 1000000,
};

static const struct mo_field effect_fields[] = {
	MO_F(effect, request, MO_INT), MO_F(effect, job, MO_INT), MO_F(effect, value, MO_INT), MO_F(effect, node, MO_STR), MO_F(effect, text, MO_STR),
	MO_F_SUB(effect, welcome, MO_OPT, &agent_welcome_desc),
};
const struct mo_desc effect_desc = MO_DESC(effect, effect_fields);

void core_out_done(struct core_out *out)
{
	mo_vec_clear(&record_desc, (void **)&out->records, &out->n_records);
	mo_vec_clear(&effect_desc, (void **)&out->effects, &out->n_effects);
}

/* First position whose id is not below. */
static size_t ids_place(const int64_t *ids, size_t n, int64_t id)
{
	size_t low = 0, high = n;

	if (n == 0 || ids[n - 1] < id)
		return n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool ids_has(const int64_t *ids, size_t n, int64_t id)
{
	size_t at = ids_place(ids, n, id);

	return at < n && ids[at] == id;
}

void ids_add(int64_t **ids, size_t *n, int64_t id)
{
	size_t at = ids_place(*ids, *n, id);

	if (at < *n && (*ids)[at] == id)
		return;
	mo_ints_add(ids, n, id);
	memmove(*ids + at + 1, *ids + at, (*n - 1 - at) * sizeof(**ids));
	(*ids)[at] = id;
}

void ids_remove(int64_t *ids, size_t *n, int64_t id)
{
	size_t at = ids_place(ids, *n, id);

	if (at >= *n || ids[at] != id)
		return;
	memmove(ids + at, ids + at + 1, (*n - at - 1) * sizeof(*ids));
	(*n)--;
}

void core_touch(struct core *c, int64_t job)
{
	ids_add(&c->dirty, &c->n_dirty, job);
}

struct live *core_live(const struct core *c, const char *node)
{
	const struct node *n = node_find(&c->state, node);

	return n ? &c->lives[n - c->state.nodes] : NULL;
}

static void live_done(struct live *l)
{
	free(l->jobs);
	free(l->strays);
	free(l->tellers);
	free(l->scans);
	free(l->checks);
	mo_vec_clear(&gpu_sensors_desc, (void **)&l->sensors, &l->n_sensors);
	mo_vec_clear(&nic_sensors_desc, (void **)&l->nics, &l->n_nics);
	mo_desc_free(&agent_hello_desc, l->candidate);
}

void core_lives_clear(struct core *c)
{
	for (size_t i = 0; i < c->state.n_nodes; i++)
		live_done(&c->lives[i]);
	free(c->lives);
	c->lives = NULL;
}

void core_reindex(struct core *c)
{
	size_t n = 0;

	idems_reindex(c);
	ids_add(&c->state.holders, &c->state.n_holders, 0);   /* never NULL */
	c->state.n_holders = c->n_unfinished = c->n_ending = c->n_draining = 0;
	c->n_cordoned = c->n_cordoned_hardware = c->n_kept = 0;
	c->kept_bytes = c->active_bytes = 0;
	for (size_t i = 0; i < c->state.n_nodes; i++) {
		struct node *k = &c->state.nodes[i];

		c->n_draining += k->drain && !k->drained;
		c->n_cordoned += k->drain && k->cordon;
		c->n_cordoned_hardware += k->drain && k->cordon && k->cordon_hardware;
		k->stack_hash = health_stack_hash(k->health);
		k->same_hash = health_same_hash(k->health);
		MO_GROW(c->lives, n)->health_seen = MO_NONE;
	}
	for (size_t i = 0; i < c->state.n_jobs; i++) {
		struct job *j = &c->state.jobs[i];

		j->kept_bytes = 0;
		shared_pool_take(&c->shared, &j->spec);
		kept_count(c, j);
		if (!job_state_final(j->state))
			ids_add(&c->unfinished, &c->n_unfinished, j->id);
		if (j->end_scan)
			ids_add(&c->ending, &c->n_ending, j->id);
		if (j->n_steps)
			ids_add(&c->state.holders, &c->state.n_holders, j->id);
		for (size_t k = 0; k < j->n_steps; k++) {
			struct live *l = core_live(c, j->steps[k].node);

			if (l && !j->steps[k].forgotten)
				ids_add(&l->jobs, &l->n_jobs, j->id);
		}
		for (size_t k = 0; k < j->n_check_nodes; k++) {
			struct live *l = core_live(c, j->check_nodes[k]);

			if (l)
				ids_add(&l->checks, &l->n_checks, j->id);
		}
	}
}

struct core *core_new(const struct core_config *config)
{
	struct core *c = mo_alloc(sizeof(*c));

	c->config = *config;
	mo_desc_init(&state_desc, &c->state);
	c->state.epoch = 0;
	c->state.next_job = 1;
	c->state.next_port = config->port_min;
	c->state.next_event_seq = 1;
	c->state.time = 0;
	c->liveness_at = c->jobs_at = INT64_MAX;
	core_reindex(c);
	return c;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	core_lives_clear(c);
	free(c->state.holders);
	mo_desc_done(&state_desc, &c->state);
	free(c->idem_heads);
	talkers_clear(c);
	free(c->unfinished);
	free(c->ending);
	shared_pool_done(&c->shared);
	free(c->kept);
	free(c->fresh);
	free(c->dirty);
	free(c->wake_jobs);
	for (size_t i = 0; i < c->n_wake_nodes; i++)
		free(c->wake_nodes[i]);
	free(c->wake_nodes);
	free(c);
}

const struct state *core_state(const struct core *c)
{
	return &c->state;
}

void core_load(struct core *c, struct state *state)
{
	core_lives_clear(c);
	free(c->state.holders);
	mo_desc_done(&state_desc, &c->state);
	c->state = *state;
	c->state.holders = NULL;
	c->state.n_holders = 0;
	mo_desc_init(&state_desc, state);
	core_reindex(c);
}

void record_init(struct record *r, int type)
{
	mo_desc_init(&record_desc, r);
	r->version = RECORD_VERSION;
	r->type = type;
}

void turn_emit(struct turn *t, struct record *r)
{
	struct record *slot;
	int result;

	r->time = t->now;
	slot = MO_GROW(t->out->records, t->out->n_records);
	*slot = *r;
	mo_desc_init(&record_desc, r);
	result = core_update(t->core, slot);
	assert(result == 0);
	(void)result;
	commands_changed(t->core, slot);
}

static struct effect *effect_add(struct turn *t, int type)
{
	struct effect *e = MO_ADD(t->out, effects, &effect_desc);

	e->type = type;
	e->request = t->event ? t->event->request : 0;
	return e;
}

void turn_reply(struct turn *t, int status, int64_t job, const char *fmt, ...)
{
	struct effect *e;
	va_list ap;

	if (!t->event || t->event->request == 0)
		return;
	e = effect_add(t, FX_REPLY);
	e->status = status;
	e->job = job;
	if (fmt) {
		char text[1024];

		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		e->text = mo_strdup(text);
	}
}

void turn_log(struct turn *t, int level, int64_t job, const char *node, const char *text)
{
	struct effect *e = effect_add(t, FX_LOG);

	e->level = level;
	e->job = job;
	e->node = mo_strdup(node);
	e->text = mo_strdup(text);
}

void turn_deadline(struct turn *t, int64_t at)
{
	t->core->jobs_at = MO_MIN(t->core->jobs_at, at);
}

/* Once, at the first start of a restored state. */
static void restored_event(struct turn *t)
{
	const struct state *s = &t->core->state;
	size_t tokens = 0;

	for (size_t i = 0; i < s->n_tokens; i++)
		tokens += !s->tokens[i].revoked;
	event_emit(t, "controller.restored", MO_NONE, NULL, MO_NONE, MO_NONE, NULL,
		   "the state was restored from a backup with jobs below j-%lld; new jobs begin with j-%lld. What happened after the backup is not known: %zu tokens are valid as they were then, also those revoked "
		   "since (moectl token list); steps that the backup does not know are kept (moectl doctor names them; moectl resolve)",
		   (long long)s->restored_jobs, (long long)s->next_job, tokens);
}

static void start(struct turn *t)
{
	struct core *c = t->core;
	_cleanup_(mo_freep) char *epoch = epoch_text(c->state.epoch + 1);
	bool restored = c->state.restored_jobs != MO_NONE && c->state.restored_wait == MO_NONE;
	struct record r;

	record_init(&r, REC_CONTROLLER);
	r.value = c->state.epoch + 1;
	r.iteration = restored ? t->now + RESTORED_WAIT_DOWNS * c->config.down_us : MO_NONE;
	turn_emit(t, &r);
	if (restored)
		restored_event(t);
	for (size_t i = 0; i < c->state.n_nodes; i++)
		c->state.nodes[i].heard_at = t->now;   /* nobody could be heard while there was no controller */
	c->liveness_at = t->now;
	for (size_t i = 0; i < c->n_unfinished; i++) {
		const struct job *j = job_find(&c->state, c->unfinished[i]);

		core_touch(c, j->id);
		if (j->config_due)
			config_ask(t, j);
	}
	c->queue_dirty = true;
	health_cordon_all(t);
	event_emit(t, "controller.started", MO_NONE, NULL, MO_NONE, MO_NONE, NULL, "controller started, %s", epoch);
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

static void clock_event(struct turn *t)
{
	const struct core_event *e = t->event;
	struct core *c = t->core;
	struct record r;

	record_init(&r, REC_CLOCK);
	r.text = mo_strdup(e->text);
	r.iteration = e->value;
	r.flag = e->flag;
	r.value = e->job;
	turn_emit(t, &r);
	if (e->job) {
		for (size_t i = 0; i < c->state.n_nodes; i++)
			live_shift(&c->lives[i], e->job);
		c->tell_until += e->job;
		c->talkers_until += e->job;
		if (c->liveness_at != INT64_MAX)
			c->liveness_at += e->job;
		c->jobs_at = t->now;
	}
	if (e->when)
		event_emit(t, "controller.clock", MO_NONE, NULL, MO_NONE, MO_NONE, NULL, "%s", e->when);
}

static void dispatch(struct turn *t)
{
	switch (t->event->type) {
	case EV_START: start(t); break;
	case EV_CLOCK: clock_event(t); break;
	case EV_LATE: fleet_late(t->core, t->event->value, t->now); break;
	case EV_TICK: break;
	case EV_SUBMIT: job_submit(t); break;
	case EV_CANCEL: job_verb(t, V_CANCEL); break;
	case EV_PAUSE: job_verb(t, V_PAUSE); break;
	case EV_RESUME: job_verb(t, V_RESUME); break;
	case EV_RESTART: job_verb(t, V_RESTART); break;
	case EV_DRAIN: case EV_UNDRAIN: case EV_ACK: case EV_FENCE: fleet_verb(t); break;
	case EV_HELLO: fleet_hello(t); break;
	case EV_SYNC: case EV_NEWS: fleet_sync(t); break;
	case EV_TOKEN: case EV_TOKEN_REVOKE: case EV_TOKEN_USED: token_verb(t); break;
	case EV_REFUSED: audit_emit(t, "audit.refused", NULL, "%s", t->event->text); break;
	case EV_CONFIG: config_judged(t); break;
	case EV_RESOLVE: incarnation_resolve(t); break;
	case EV_STORE: event_emit(t, t->event->when, MO_NONE, t->event->node, MO_NONE, MO_NONE, NULL, "%s", t->event->text ? t->event->text : ""); break;
	default: assert(!"event type");
	}
}

/* What is missing is derived from the state until a pass adds nothing. */
static void act(struct turn *t)
{
	struct core *c = t->core;
	bool more;

	do {
		more = false;
		while (c->n_dirty) {
			int64_t id = c->dirty[--c->n_dirty];

			while (job_act(t, id))
				more = true;
		}
		if (c->queue_dirty)
			more |= fleet_drain(t);
		if (c->queue_dirty || c->n_fresh)
			more |= schedule(t);
	} while (more || c->n_dirty || c->queue_dirty);
}

void core_step(struct core *c, const struct core_event *event, int64_t now, struct core_out *out)
{
	struct turn t = { .core = c, .now = now, .out = out, .event = event };

	dispatch(&t);
	if (event->type == EV_TICK && now >= c->liveness_at)
		fleet_silence(&t);
	if (now >= c->jobs_at) {
		c->jobs_at = INT64_MAX;
		for (size_t i = 0; i < c->n_unfinished; i++)
			core_touch(c, c->unfinished[i]);
		c->queue_dirty = true;
	}
	act(&t);
	commands_wake(&t);
}

int64_t core_deadline(const struct core *c)
{
	return MO_MIN(c->liveness_at, c->jobs_at);
}
