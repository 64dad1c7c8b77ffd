/* Jobs: the table of transitions, the verbs, and what a job's own rules derive from its state (job_act). Everything that changes a job's state goes through job_move(). */
#include "daemon/core/inner.h"
#include "daemon/core/rules/policy.h"

#include <assert.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/model/limits.h"

const char *const job_trigger_names[_TRIGGER_N] = {
	"placed", "up", "first iteration", "failed", "node down", "node back", "retry", "give up", "completed", "stopped", "time limit", "drain",
	"cancel", "pause", "resume", "restart",
};
const char *const job_guard_names[_GUARD_N] = {
	"always", "some step lives", "launched, not failed", "iterates or never did", "all started", "to cancel", "to pause", "to run again", "out of time", "not to cancel",
};

#define ROW(s, t, g, n) { JOB_##s, t, G_##g, n, NULL }
#define IGNORE(s, t) { JOB_##s, t, G_ALWAYS, NEXT_IGNORE, NULL }
#define REFUSE(s, t, why) { JOB_##s, t, G_ALWAYS, NEXT_REFUSE, why }
#define FINAL(s, why) \
	IGNORE(s, T_PLACED), IGNORE(s, T_UP), IGNORE(s, T_ITERATION), IGNORE(s, T_FAILED), IGNORE(s, T_NODE_DOWN), IGNORE(s, T_NODE_BACK), IGNORE(s, T_RETRY), \
	IGNORE(s, T_GIVE_UP), IGNORE(s, T_COMPLETED), IGNORE(s, T_STOPPED), IGNORE(s, T_TIME_LIMIT), IGNORE(s, T_DRAIN), \
	REFUSE(s, V_CANCEL, why), REFUSE(s, V_PAUSE, why), REFUSE(s, V_RESUME, why), REFUSE(s, V_RESTART, why)
#define LAUNCHED(s) \
	IGNORE(s, T_PLACED), IGNORE(s, T_ITERATION), ROW(s, T_FAILED, ALWAYS, JOB_RECOVERING), ROW(s, T_NODE_DOWN, ALWAYS, JOB_RECOVERING), IGNORE(s, T_NODE_BACK), \
	IGNORE(s, T_RETRY), ROW(s, T_GIVE_UP, ALWAYS, JOB_FAILED), ROW(s, T_COMPLETED, ALWAYS, JOB_COMPLETED), IGNORE(s, T_STOPPED), \
	ROW(s, T_TIME_LIMIT, ALWAYS, JOB_STOPPING), ROW(s, T_DRAIN, ALWAYS, JOB_STOPPING), ROW(s, V_CANCEL, ALWAYS, JOB_STOPPING), ROW(s, V_PAUSE, ALWAYS, JOB_STOPPING), \
	REFUSE(s, V_RESUME, "it is not paused"), ROW(s, V_RESTART, ALWAYS, JOB_STOPPING)

const struct job_row job_rows[] = {
	ROW(QUEUED, T_PLACED, ALWAYS, JOB_STARTING), IGNORE(QUEUED, T_UP), IGNORE(QUEUED, T_ITERATION), IGNORE(QUEUED, T_FAILED), IGNORE(QUEUED, T_NODE_DOWN),
	IGNORE(QUEUED, T_NODE_BACK), IGNORE(QUEUED, T_RETRY), ROW(QUEUED, T_GIVE_UP, ALWAYS, JOB_FAILED), IGNORE(QUEUED, T_COMPLETED), IGNORE(QUEUED, T_STOPPED),
	IGNORE(QUEUED, T_TIME_LIMIT), IGNORE(QUEUED, T_DRAIN), ROW(QUEUED, V_CANCEL, ALWAYS, JOB_CANCELLED), ROW(QUEUED, V_PAUSE, ALWAYS, JOB_PAUSED),
	REFUSE(QUEUED, V_RESUME, "it is not paused"), ROW(QUEUED, V_RESTART, ALWAYS, JOB_QUEUED),

	ROW(STARTING, T_UP, ALWAYS, JOB_RUNNING), LAUNCHED(STARTING),
	IGNORE(RUNNING, T_UP), LAUNCHED(RUNNING),

	ROW(RECOVERING, T_PLACED, ALWAYS, JOB_RECOVERING), ROW(RECOVERING, T_UP, STARTED, JOB_RUNNING), IGNORE(RECOVERING, T_UP),
	ROW(RECOVERING, T_ITERATION, FIRST, JOB_RUNNING), IGNORE(RECOVERING, T_ITERATION), ROW(RECOVERING, T_FAILED, ALWAYS, JOB_RECOVERING),
	ROW(RECOVERING, T_NODE_DOWN, ALWAYS, JOB_RECOVERING), ROW(RECOVERING, T_NODE_BACK, STARTED, JOB_RUNNING), IGNORE(RECOVERING, T_NODE_BACK),
	ROW(RECOVERING, T_RETRY, ALWAYS, JOB_RECOVERING), ROW(RECOVERING, T_GIVE_UP, ALWAYS, JOB_FAILED), ROW(RECOVERING, T_COMPLETED, ALWAYS, JOB_COMPLETED),
	IGNORE(RECOVERING, T_STOPPED), ROW(RECOVERING, T_TIME_LIMIT, LIVE, JOB_STOPPING), ROW(RECOVERING, T_TIME_LIMIT, ALWAYS, JOB_FAILED),
	ROW(RECOVERING, T_DRAIN, HEALTHY, JOB_STOPPING), IGNORE(RECOVERING, T_DRAIN), ROW(RECOVERING, V_CANCEL, LIVE, JOB_STOPPING), ROW(RECOVERING, V_CANCEL, ALWAYS, JOB_CANCELLED),
	ROW(RECOVERING, V_PAUSE, LIVE, JOB_STOPPING), ROW(RECOVERING, V_PAUSE, ALWAYS, JOB_PAUSED), REFUSE(RECOVERING, V_RESUME, "it is not paused"),
	ROW(RECOVERING, V_RESTART, LIVE, JOB_STOPPING), ROW(RECOVERING, V_RESTART, ALWAYS, JOB_RECOVERING),

	IGNORE(STOPPING, T_PLACED), IGNORE(STOPPING, T_UP), IGNORE(STOPPING, T_ITERATION), IGNORE(STOPPING, T_FAILED), IGNORE(STOPPING, T_NODE_DOWN),
	IGNORE(STOPPING, T_NODE_BACK), IGNORE(STOPPING, T_RETRY), IGNORE(STOPPING, T_GIVE_UP), ROW(STOPPING, T_COMPLETED, NOT_CANCEL, JOB_COMPLETED), IGNORE(STOPPING, T_COMPLETED),
	ROW(STOPPING, T_STOPPED, CANCEL, JOB_CANCELLED), ROW(STOPPING, T_STOPPED, PAUSE, JOB_PAUSED), ROW(STOPPING, T_STOPPED, AGAIN, JOB_QUEUED),
	ROW(STOPPING, T_STOPPED, TIME, JOB_FAILED), IGNORE(STOPPING, T_TIME_LIMIT), IGNORE(STOPPING, T_DRAIN),
	ROW(STOPPING, V_CANCEL, ALWAYS, JOB_STOPPING), ROW(STOPPING, V_PAUSE, PAUSE, JOB_STOPPING), ROW(STOPPING, V_PAUSE, AGAIN, JOB_STOPPING),
	REFUSE(STOPPING, V_PAUSE, "it is being stopped for good"), REFUSE(STOPPING, V_RESUME, "it is still stopping; wait until it is paused"),
	ROW(STOPPING, V_RESTART, AGAIN, JOB_STOPPING), REFUSE(STOPPING, V_RESTART, "it is being stopped"),

	IGNORE(PAUSED, T_PLACED), IGNORE(PAUSED, T_UP), IGNORE(PAUSED, T_ITERATION), IGNORE(PAUSED, T_FAILED), IGNORE(PAUSED, T_NODE_DOWN), IGNORE(PAUSED, T_NODE_BACK),
	IGNORE(PAUSED, T_RETRY), IGNORE(PAUSED, T_GIVE_UP), IGNORE(PAUSED, T_COMPLETED), IGNORE(PAUSED, T_STOPPED), IGNORE(PAUSED, T_TIME_LIMIT), IGNORE(PAUSED, T_DRAIN),
	ROW(PAUSED, V_CANCEL, ALWAYS, JOB_CANCELLED), REFUSE(PAUSED, V_PAUSE, "it is paused already"), ROW(PAUSED, V_RESUME, ALWAYS, JOB_QUEUED),
	REFUSE(PAUSED, V_RESTART, "it is paused; say 'moectl resume' first"),

	FINAL(COMPLETED, "it is completed; submit it again to run it again"),
	FINAL(FAILED, "it has failed; submit it again to run it again"),
	FINAL(CANCELLED, "it is cancelled; a cancelled job never starts again"),
};
const size_t n_job_rows = ELEMENTSOF(job_rows);

bool job_guard_holds(const struct job *j, int guard)
{
	bool first = !j->failed && !j->waiting_node && j->n_places > 0 && (j->iteration != MO_NONE || j->watermark == MO_NONE);

	switch (guard) {
	case G_ALWAYS: return true;
	case G_LIVE: return job_live(j);
	case G_HEALTHY: return !j->failed && j->n_places > 0;
	case G_FIRST: return first;
	case G_STARTED: return first && j->n_started == (int64_t)j->n_places;
	case G_CANCEL: return j->intent == INTENT_CANCEL;
	case G_PAUSE: return j->intent == INTENT_PAUSE;
	case G_AGAIN: return j->intent == INTENT_RESTART || j->intent == INTENT_DRAIN;
	case G_TIME: return j->intent == INTENT_TIME_LIMIT;
	case G_NOT_CANCEL: return j->intent != INTENT_CANCEL;
	default: return false;
	}
}

const struct job_row *job_row_find(const struct job *j, int trigger)
{
	for (size_t i = 0; i < n_job_rows; i++)
		if (job_rows[i].state == j->state && job_rows[i].trigger == trigger && job_guard_holds(j, job_rows[i].guard))
			return &job_rows[i];
	assert(!"a state x trigger pair without a row");
	return NULL;
}

static const char *event_of(int state)
{
	static const char *const types[_JOB_STATE_N] = {
		"job.queued", "job.starting", "job.running", "job.recovering", "job.stopping", "job.paused", "job.completed", "job.failed", "job.cancelled",
	};

	return types[state];
}

void job_move(struct turn *t, int64_t id, int trigger, bool over, int follows, const char *reason)
{
	struct job *j = job_find(&t->core->state, id);
	const struct job_row *row = job_row_find(j, trigger);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *why = mo_strdup(reason);
	int before = j->state;
	struct record r;

	assert(row->next >= 0);
	record_init(&r, REC_JOB);
	r.job = id;
	r.state = row->next;
	r.text = mo_strdup(why);
	r.flag = over;
	r.value = follows;
	turn_emit(t, &r);
	j = job_find(&t->core->state, id);
	if (row->next == before || row->next == JOB_STARTING)
		return;
	data_str(&b, "from", job_state_names[before]);
	data_str(&b, "to", job_state_names[row->next]);
	data_str(&b, "reason", why);
	event_emit(t, event_of(row->next), id, NULL, MO_NONE, j->attempt > 0 ? j->attempt : MO_NONE, data_end(&b), "%s %s%s%s", j->spec.recipe.name,
		row->next == JOB_QUEUED ? "is queued again" : job_state_names[row->next], why ? ": " : "", why ? why : "");
}

void job_reason(struct turn *t, int64_t id, const char *reason)
{
	const struct job *j = job_find(&t->core->state, id);
	struct record r;

	record_init(&r, REC_JOB);
	r.job = id;
	r.state = j->state;
	r.text = mo_strdup(reason);
	r.value = 0;
	turn_emit(t, &r);
}

void job_intent(struct turn *t, int64_t id, int intent, bool now, int64_t from)
{
	struct record r;

	record_init(&r, REC_INTENT);
	r.job = id;
	r.value = intent;
	r.flag = now;
	r.iteration = from;
	turn_emit(t, &r);
}

/* ---- verbs ---- */

/* A user may have as many unfinished jobs as there is still room for, so that the next one always finds half of what the one before found. True after 429. */
static bool no_room(struct turn *t, const char *user)
{
	const struct core *c = t->core;
	size_t room = c->n_unfinished < MO_JOBS_ACTIVE_MAX ? MO_JOBS_ACTIVE_MAX - c->n_unfinished : 0, own = 0;

	for (size_t i = 0; i < c->n_unfinished && c->n_unfinished >= room && !t->event->may_all; i++)
		own += mo_streq(job_find(&c->state, c->unfinished[i])->spec.user, user);
	if (room == 0)
		turn_reply(t, 429, MO_NONE, "submit: there are %d unfinished jobs; wait for some to end, or cancel some", MO_JOBS_ACTIVE_MAX);
	else if (own >= room)
		turn_reply(t, 429, MO_NONE, "submit: %s has %zu unfinished jobs, and there is room for %zu more of all users; wait for some to end, or cancel some", user ? user : "nobody", own, room);
	return room == 0 || own >= room;
}

/* The same for the bytes of their recipes, with what was read of experiments. */
static bool no_room_for_text(struct turn *t, const struct submit *spec)
{
	const struct core *c = t->core;
	int64_t room = MO_MAX(MO_ACTIVE_TEXTS_MAX - c->active_bytes, 0), own = 0;
	int64_t want = spec->recipe_text ? (int64_t)strlen(spec->recipe_text) : 0;

	for (size_t i = 0; i < c->n_unfinished && c->active_bytes + want > room; i++) {
		const struct job *j = job_find(&c->state, c->unfinished[i]);

		if (!t->event->may_all && mo_streq(j->spec.user, spec->user))
			own += (int64_t)j->kept_bytes;
	}
	if (want <= room && own + want <= room)
		return false;
	turn_reply(t, 429, MO_NONE,
		   "submit: the recipes of unfinished jobs, with their experiments, take %lld of "
		   "%lld MiB (%lld of %s); wait for some to end, or cancel some",
		   (long long)(c->active_bytes >> 20), MO_ACTIVE_TEXTS_MAX >> 20,
		   (long long)(own >> 20), spec->user ? spec->user : "nobody");
	return true;
}

/* Two unfinished jobs that save to one directory would resume from each other's checkpoints. A job that ended
 * leaves its directory to the next; one of another user that never ran has nothing there, or anybody could keep
 * a directory from its owner: of these two the later waits (schedule.c). True after 409. */
static bool dir_taken(struct turn *t, const char *dir)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(dir);

	for (size_t i = 0; clean && i < t->core->n_unfinished; i++) {
		const struct job *j = job_find(&t->core->state, t->core->unfinished[i]);

		if ((!mo_streq(j->checkpoint_dir, clean) && !mo_streq(j->saves_to, clean)) || (!j->attempt && !mo_streq(j->spec.user, t->event->submit->user)))
			continue;
		turn_reply(t, 409, MO_NONE,
			   "checkpoint.dir: %s is that of j-%lld (%s), which is %s: give this job another one "
			   "(--set checkpoint.dir=/path), or submit it when j-%lld has ended: it then resumes "
			   "from there",
			   clean, (long long)j->id, j->spec.recipe.name ? j->spec.recipe.name : "?",
			   job_state_names[j->state], (long long)j->id);
		return true;
	}
	return false;
}

/* Is the directory a part of the other one? Both are clean. */
static bool lies_below(const char *dir, const char *other)
{
	size_t n = strlen(other);

	return dir && mo_starts_with(dir, other) && (dir[n] == '/' || (n == 1 && dir[1]));
}

/* "lies below"; NULL: neither lies in the other. */
static const char *nested(const char *dir, const struct job *j)
{
	const char *other = j->checkpoint_dir ? j->checkpoint_dir : j->saves_to;

	if (!other || !dir)
		return NULL;
	return lies_below(dir, other)	? "lies below"
	       : lies_below(other, dir) ? "lies above"
					: NULL;
}

/* A job takes what it finds in its directory for checkpoints of its own, and what checkpoint.keep removes goes with
 * all that is below it. So a user's directories may not lie in each other. Between users it is only told: nobody may
 * keep a directory from all others by naming the one above. True after 409; *ret_warning: the caller's. */
static bool dir_nested(struct turn *t, const char *dir, char **ret_warning)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(dir);

	for (size_t i = 0; clean && i < t->core->n_unfinished; i++) {
		const struct job *j = job_find(&t->core->state, t->core->unfinished[i]);
		const char *how = nested(clean, j), *name = j->spec.recipe.name;
		bool own = mo_streq(j->spec.user, t->event->submit->user);

		if (!how || (!own && *ret_warning))
			continue;
		_cleanup_(mo_freep) char *text = mo_printf(
			"checkpoint.dir: %s %s that of j-%lld (%s%s), which is %s: what one of them saves "
			"or removes there the other takes for its own",
			clean, how, (long long)j->id, name ? name : "?", own ? "" : ", another user's",
			job_state_names[j->state]);

		if (!own) {
			*ret_warning = mo_printf("%s: better give this job another directory", text);
			continue;
		}
		turn_reply(t, 409, MO_NONE,
			   "%s: give this job a directory beside it (--set checkpoint.dir=/path), or submit it "
			   "when j-%lld has ended",
			   text, (long long)j->id);
		return true;
	}
	return false;
}

/* Whoever says the name means the newest one from now on. NULL: no other has it; else the caller's. */
static char *name_taken(const struct turn *t, const char *name)
{
	for (size_t i = t->core->n_unfinished; name && i-- > 0;) {
		const struct job *j = job_find(&t->core->state, t->core->unfinished[i]);

		if (mo_streq(j->spec.recipe.name, name))
			return mo_printf("name: j-%lld, which is %s, is called %s too: the name now means this job, "
					 "and j-%lld is that one (--name gives another)",
					 (long long)j->id, job_state_names[j->state], name, (long long)j->id);
	}
	return NULL;
}

void job_submit(struct turn *t)
{
	const struct submit *spec = t->event->submit;
	int64_t id = t->core->state.next_job;
	const struct idem *known;
	_cleanup_(mo_freep) char *warning = NULL;
	struct record r;

	known = spec->idempotency_key ? idem_find(t->core, spec->user, spec->idempotency_key, t->now) : NULL;
	if (known) {
		if (mo_streq(known->digest, spec->digest))
			turn_reply(t, 200, known->job, NULL);
		else
			turn_reply(t, 422, MO_NONE, "idempotency key: it was used for another body, job j-%lld; use a new key for a new job", (long long)known->job);
		return;
	}
	if (spec->recipe.gpus < 1 || spec->recipe.gpus > MO_RANKS_MAX) {
		turn_reply(t, 422, MO_NONE, "cluster.gpus: must be 1 to %d", MO_RANKS_MAX);
		return;
	}
	if (no_room(t, spec->user) || no_room_for_text(t, spec) || dir_taken(t, spec->recipe.checkpoint.dir) ||
	    dir_nested(t, spec->recipe.checkpoint.dir, &warning))
		return;
	_cleanup_(mo_freep) char *named = name_taken(t, spec->recipe.name);

	record_init(&r, REC_SUBMIT);
	r.job = id;
	r.submit = t->event->flag ? mo_desc_new(&submit_desc) : mo_desc_dup(&submit_desc, spec);
	if (t->event->flag) {
		*r.submit = *spec;
		mo_desc_init(&submit_desc, t->event->submit);
	}
	if (warning)
		mo_strs_add(&r.submit->warnings, &r.submit->n_warnings, warning);
	if (named)
		mo_strs_add(&r.submit->warnings, &r.submit->n_warnings, named);
	turn_emit(t, &r);
	spec = &job_find(&t->core->state, id)->spec;
	event_emit(t, "job.submitted", id, NULL, MO_NONE, MO_NONE, NULL, "%s submitted by %s, %lld GPU%s", spec->recipe.name, spec->user ? spec->user : "?",
		(long long)spec->recipe.gpus, spec->recipe.gpus == 1 ? "" : "s");
	turn_reply(t, 201, id, NULL);
}

/* restart --from needs something to restart from. */
static bool from_is_usable(struct turn *t, const struct job *j)
{
	int64_t from = t->event->value;

	if (from == MO_NONE || from == 0)
		return true;
	if (from < 0 || !j->spec.recipe.checkpoint.dir) {
		turn_reply(t, 409, j->id, "job j-%lld: restart --from: %s", (long long)j->id, from < 0 ? "the iteration must not be negative" : "the recipe has no checkpoint.dir");
		return false;
	}
	if (checkpoint_newest_at_most(j, from, false) == MO_NONE) {
		turn_reply(t, 409, j->id, "job j-%lld: restart --from %lld: no complete checkpoint at or before it %s; take one of 'moectl checkpoints j-%lld', or --from 0 to start afresh",
			(long long)j->id, (long long)from, j->scan_attempt == 0 ? "is known before the job's first start" : "is left", (long long)j->id);
		return false;
	}
	return true;
}

void job_verb(struct turn *t, int trigger)
{
	static const int intents[] = { [V_CANCEL] = INTENT_CANCEL, [V_PAUSE] = INTENT_PAUSE, [V_RESTART] = INTENT_RESTART };
	static const char *const reasons[] = { [V_CANCEL] = "cancelled", [V_PAUSE] = "paused", [V_RESTART] = "restart asked for" };
	const struct core_event *e = t->event;
	struct job *j = job_find(&t->core->state, e->job);
	const struct job_row *row;
	_cleanup_(mo_freep) char *reason = NULL;
	int before;

	if (!j) {
		turn_reply(t, 404, MO_NONE, "job j-%lld: no such job; see 'moectl list --all'", (long long)e->job);
		return;
	}
	if (!e->may_all && !mo_streq(e->user, j->spec.user)) {
		turn_reply(t, 403, j->id, "job j-%lld: it belongs to %s; an operator may %s it", (long long)j->id, j->spec.user ? j->spec.user : "somebody else", job_trigger_names[trigger]);
		return;
	}
	row = job_row_find(j, trigger);
	if (row->next == NEXT_REFUSE) {
		turn_reply(t, 409, j->id, "job j-%lld: cannot %s it: %s", (long long)j->id, job_trigger_names[trigger], row->text);
		return;
	}
	if (trigger == V_RESTART && !from_is_usable(t, j))
		return;
	before = j->state;
	if (trigger == V_RESUME) {
		job_move(t, e->job, trigger, false, 0, NULL);
	} else {
		reason = mo_printf("%s%s%s", reasons[trigger], e->user ? " by " : "", e->user ? e->user : "");
		job_intent(t, e->job, intents[trigger], trigger == V_CANCEL && (e->flag || (j->intent == INTENT_CANCEL && j->intent_now)), trigger == V_RESTART ? e->value : j->restart_from);
		if (row->next != before || before == JOB_STOPPING)
			job_move(t, e->job, trigger, false, 0, reason);
	}
	turn_reply(t, 200, e->job, NULL);
}

/* ---- what follows from a job's own state ---- */

static bool try_move(struct turn *t, int64_t id, int trigger, const char *reason)
{
	const struct job *j = job_find(&t->core->state, id);
	int next = job_row_find(j, trigger)->next;

	if (next < 0 || next == j->state)
		return false;
	job_move(t, id, trigger, false, 0, reason);
	return true;
}

/* The silent nodes of a job: the first one's name, and when the last of them was heard. */
static const char *silent_node(const struct state *s, const struct job *j, int64_t *ret_heard)
{
	const char *first = NULL;

	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		const struct node *n = st->attempt == j->attempt && !step_dead(st) ? node_find(s, st->node) : NULL;

		if (!n || n->state != NODE_DOWN)
			continue;
		*ret_heard = first ? MO_MAX(*ret_heard, n->heard_at) : n->heard_at;
		first = first ? first : n->name;
	}
	return first;
}

static bool wait_node(struct turn *t, int64_t id, bool wait)
{
	struct record r;

	record_init(&r, REC_WAIT_NODE);
	r.job = id;
	r.flag = wait;
	turn_emit(t, &r);
	return true;
}

/* Lost contact is not death: nothing is killed, nothing restarts; an advancing iteration disproves even the suspicion. */
static bool look_at_silence(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	int64_t heard = 0, limit = MO_MAX(STALL_MIN_US, 3 * samples_step_us(j));
	const char *silent = j->n_silent > 0 ? silent_node(&t->core->state, j, &heard) : NULL;
	bool advances = silent && j->progress_at > heard && t->now - j->progress_at <= limit;
	_cleanup_(mo_freep) char *reason = NULL;

	if (j->failed || j->state == JOB_STOPPING)
		return false;
	if (advances)
		turn_deadline(t, j->progress_at + limit + 1);
	if (silent && !advances && !j->waiting_node) {
		reason = mo_printf("node %s is silent and no iteration advances: waiting for its agent, a new boot, or 'moectl fence %s --confirmed'", silent, silent);
		wait_node(t, id, true);
		job_move(t, id, T_NODE_DOWN, false, 0, reason);
		return true;
	}
	if (j->waiting_node && (!silent || advances)) {
		wait_node(t, id, false);
		if (!try_move(t, id, T_NODE_BACK, NULL))
			job_reason(t, id, NULL);
		return true;
	}
	return false;
}

static bool look_at_checkpoints(struct turn *t, int64_t id)
{
	const struct checkpoint *surplus = checkpoint_surplus(job_find(&t->core->state, id));
	struct record r;

	if (!surplus)
		return false;
	record_init(&r, REC_CHECKPOINT);
	r.job = id;
	r.checkpoint = mo_desc_dup(&checkpoint_desc, surplus);
	checkpoint_remove(job_find(&t->core->state, id), r.checkpoint);
	turn_emit(t, &r);
	return true;
}

static bool look_at_time(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	int64_t limit = j->spec.recipe.time_limit_us;
	_cleanup_(mo_freep) char *reason = NULL;
	int next;

	if (limit == MO_NONE || limit <= 0 || j->started_at == MO_NONE)
		return false;
	next = job_row_find(j, T_TIME_LIMIT)->next;
	if (next < 0)
		return false;
	if (t->now < j->started_at + limit) {
		turn_deadline(t, j->started_at + limit);
		return false;
	}
	reason = mo_printf("time limit of %lld s reached", (long long)(limit / 1000000));
	job_intent(t, id, INTENT_TIME_LIMIT, false, j->restart_from);
	job_move(t, id, T_TIME_LIMIT, false, 0, reason);
	return true;
}

/* A drained node that does not wait for the job's end: now, or after the next complete checkpoint. */
static bool look_at_drain(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = NULL;

	if (j->n_drained == 0 || job_row_find(j, T_DRAIN)->next < 0)
		return false;
	for (size_t i = 0; i < j->n_places; i++) {
		const struct node *n = node_find(&t->core->state, j->places[i].node);
		bool due = n && n->drain && mo_streq(n->drain_when, "now");

		for (size_t k = 0; n && n->drain && mo_streq(n->drain_when, "checkpoint") && k < j->n_checkpoints; k++)
			due |= checkpoint_usable(&j->checkpoints[k]) && j->checkpoints[k].attempt == j->attempt && j->checkpoints[k].saved_at >= n->drain_at;
		if (!due)
			continue;
		reason = mo_printf("node %s is drained; the job moves elsewhere", n->name);
		job_intent(t, id, INTENT_DRAIN, false, j->restart_from);
		job_move(t, id, T_DRAIN, false, 0, reason);
		return true;
	}
	return false;
}

/* Stopped where it runs, by a person or by the shutdown of its machine: the rest of the job gets its planned stop too, so that it can save together, and starts again. No failure. */
static bool look_at_outside(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *reason = NULL;

	if (j->failed || j->n_places == 0)
		return false;
	for (size_t i = 0; i < j->n_steps && !reason; i++) {
		const struct step *st = &j->steps[i];
		const struct node *n = st->attempt == j->attempt ? node_find(&t->core->state, st->node) : NULL;

		if (n && (st->outside || (st->refused && n->leaving)))
			reason = mo_printf("the step on %s was stopped there, not by moectl%s; the job starts again", st->node,
					   n->leaving ? " (its machine is going down)" : " (systemctl stop, or a shutdown)");
		else if (n && n->leaving && !step_dead(st) && mo_streq(n->boot_id, st->boot_id))
			reason = mo_printf("the machine of node %s is going down; the job moves elsewhere", st->node);
	}
	if (!reason || job_row_find(j, T_DRAIN)->next < 0)
		return false;
	job_intent(t, id, INTENT_DRAIN, false, j->restart_from);
	job_move(t, id, T_DRAIN, false, 0, reason);
	return true;
}

bool job_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);

	if (!j || job_state_final(j->state))
		return false;
	if (j->n_places > 0) {
		if (look_at_outside(t, id) || policy_fail(t, id))
			return true;
		if (policy_all_dead(j) && !config_awaited(j) &&
		    !doubt_awaited(&t->core->state, j)) {
			policy_conclude(t, id);
			return true;
		}
		if (j->n_started == (int64_t)j->n_places && try_move(t, id, T_UP, NULL))
			return true;
		if (j->iteration != MO_NONE && try_move(t, id, T_ITERATION, NULL))
			return true;
		if (look_at_silence(t, id) || look_at_drain(t, id) || look_at_checkpoints(t, id) || actual_act(t, id))
			return true;
	}
	if (j->n_check_nodes + j->n_check_done > 0 && health_check_act(t, id))
		return true;
	return look_at_time(t, id);
}
