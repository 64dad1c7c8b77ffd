/* What people ask of jobs: submit, cancel, pause, resume, restart. Each is answered in its turn,
 * and one that is refused (403, 404, 409, 422, 429) has changed nothing. Called by core.c with
 * the request as the turn's event; what follows from the state that a verb leaves is jobs.c's. */
#include "daemon/core/rules/verbs.h"

#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/update/idems.h"
#include "daemon/core/update/retained.h"
#include "lib/base/buf.h"
#include "lib/model/limits.h"

/* A user may have as many unfinished jobs as there is still room for, so that the next one
 * always finds half of what the one before found. True after 429. */
static bool no_room(struct turn *t, const char *what, const char *user)
{
	const struct core *c = t->core;
	size_t room = c->n_unfinished < MO_JOBS_ACTIVE_MAX ? MO_JOBS_ACTIVE_MAX - c->n_unfinished
							   : 0,
	       own = 0;

	for (size_t i = 0; i < c->n_unfinished && c->n_unfinished >= room && !t->input->by.may_all;
	     i++)
		own += mo_streq(job_find(&c->state, c->unfinished[i])->spec.user, user);
	if (room == 0)
		turn_reply(t, 429, MO_NONE,
			   "%s: there are %d unfinished jobs; wait for some to end, or cancel "
			   "some",
			   what, MO_JOBS_ACTIVE_MAX);
	else if (own >= room)
		turn_reply(t, 429, MO_NONE,
			   "%s: %s has %zu unfinished jobs, and there is room for %zu more of "
			   "all users; wait for some to end, or cancel some",
			   what, user ? user : "nobody", own, room);
	return room == 0 || own >= room;
}

/* The same for the bytes of their recipes, with what was read of experiments. */
static bool no_room_for_text(struct turn *t, const char *what, const struct submit *spec)
{
	const struct core *c = t->core;
	int64_t room = MO_MAX(MO_ACTIVE_TEXTS_MAX - c->active_bytes, 0), own = 0;
	int64_t want = spec->recipe_text ? (int64_t)strlen(spec->recipe_text) : 0;

	for (size_t i = 0; i < c->n_unfinished && c->active_bytes + want > room; i++) {
		const struct job *j = job_find(&c->state, c->unfinished[i]);

		if (!t->input->by.may_all && mo_streq(j->spec.user, spec->user))
			own += retained_of(c, j->id);
	}
	if (want <= room && own + want <= room)
		return false;
	turn_reply(t, 429, MO_NONE,
		   "%s: the recipes of unfinished jobs, with their experiments, take %lld of "
		   "%lld MiB (%lld of %s); wait for some to end, or cancel some",
		   what, (long long)(c->active_bytes >> 20), MO_ACTIVE_TEXTS_MAX >> 20,
		   (long long)(own >> 20), spec->user ? spec->user : "nobody");
	return true;
}

/* Two unfinished jobs that save to one directory would resume from each other's checkpoints. A
 * job that ended leaves its directory to the next; one of another user that never ran has
 * nothing there, or anybody could keep a directory from its owner: of these two the later waits
 * (schedule.c). True after 409. */
static bool dir_taken(struct turn *t, const char *dir)
{
	size_t n;
	const struct claim *same = claims_of(&t->core->dirs, dir, &n);

	t->core->looked += (int64_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct job *j = job_find(&t->core->state, same[i].job);

		if (!j->attempt && !mo_streq(j->spec.user, t->input->submit->user))
			continue;
		turn_reply(t, 409, MO_NONE,
			   "checkpoint.dir: %s is that of j-%lld (%s), which is %s: give this job "
			   "another one (--set checkpoint.dir=/path), or submit it when j-%lld has "
			   "ended: it then resumes from there",
			   dir, (long long)j->id, j->spec.recipe.name ? j->spec.recipe.name : "?",
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
	const char *other = j->saves.dir ? j->saves.dir : j->saves.by_config;

	if (!other || !dir)
		return NULL;
	return lies_below(dir, other) ? "lies below" : lies_below(other, dir) ? "lies above" : NULL;
}

/* A job takes what it finds in its directory for checkpoints of its own, and what
 * checkpoint.keep removes goes with all that is below it. So a user's directories may not lie in
 * each other. Between users it is only reported: nobody may keep a directory from all others by
 * naming the one above. True after 409; *ret_warning: the caller's. */
static bool dir_nested(struct turn *t, const char *dir, char **ret_warning)
{
	_cleanup_(mo_freep) int64_t *ids = NULL;
	size_t n = dir ? claims_around(t->core, dir, &ids) : 0;

	t->core->looked += (int64_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct job *j = job_find(&t->core->state, ids[i]);
		const char *how = nested(dir, j), *name = j->spec.recipe.name;
		bool own = mo_streq(j->spec.user, t->input->submit->user);

		if (!how || (!own && *ret_warning))
			continue;
		_cleanup_(mo_freep) char *text =
			mo_printf("checkpoint.dir: %s %s that of j-%lld (%s%s), which is %s: what "
				  "one of them saves or removes there the other takes for its own",
				  dir, how, (long long)j->id, name ? name : "?",
				  own ? "" : ", another user's", job_state_names[j->state]);

		if (!own) {
			*ret_warning =
				mo_printf("%s: better give this job another directory", text);
			continue;
		}
		turn_reply(t, 409, MO_NONE,
			   "%s: give this job a directory beside it (--set checkpoint.dir=/path), "
			   "or submit it when j-%lld has ended",
			   text, (long long)j->id);
		return true;
	}
	return false;
}

/* Whoever says the name means the newest one from now on. NULL: no other has it; else the
 * caller's. */
static char *name_taken(const struct turn *t, const char *name)
{
	size_t n;
	const struct claim *same = claims_of(&t->core->names, name, &n);
	const struct job *j = n ? job_find(&t->core->state, same[n - 1].job) : NULL;

	return j ? mo_printf("name: j-%lld, which is %s, is called %s too: the name now means this "
			     "job, and j-%lld is that one (--name gives another)",
			     (long long)j->id, job_state_names[j->state], name, (long long)j->id)
		 : NULL;
}

void job_submit(struct turn *t)
{
	const struct submit *spec = t->input->submit;
	int64_t id = t->core->state.next_job;
	const struct idem *known;
	_cleanup_(mo_freep) char *dir = recipe_save_dir(&spec->recipe), *warning = NULL;
	struct record r;

	known = spec->idempotency_key
			? idem_find(t->core, spec->user, spec->idempotency_key, t->now)
			: NULL;
	if (known) {
		if (mo_streq(known->digest, spec->digest))
			turn_reply(t, 200, known->job, NULL);
		else
			turn_reply(t, 422, MO_NONE,
				   "idempotency key: it was used for another body, job j-%lld; use "
				   "a new key for a new job",
				   (long long)known->job);
		return;
	}
	if (spec->recipe.gpus < 1 || spec->recipe.gpus > MO_RANKS_MAX) {
		turn_reply(t, 422, MO_NONE, "cluster.gpus: must be 1 to %d", MO_RANKS_MAX);
		return;
	}
	if (no_room(t, "submit", spec->user) || no_room_for_text(t, "submit", spec) ||
	    dir_taken(t, dir) || dir_nested(t, dir, &warning))
		return;
	_cleanup_(mo_freep) char *named = name_taken(t, spec->recipe.name);

	record_init(&r, REC_SUBMIT);
	r.job = id;
	r.submit = mo_desc_new(&submit_desc);
	*r.submit = *spec;
	mo_desc_init(&submit_desc, t->input->submit);
	if (warning)
		mo_strs_add(&r.submit->warnings, &r.submit->n_warnings, warning);
	if (named)
		mo_strs_add(&r.submit->warnings, &r.submit->n_warnings, named);
	turn_emit(t, &r);
	spec = &job_find(&t->core->state, id)->spec;
	event_emit(t, EVENT_JOB_SUBMITTED, id, NULL, MO_NONE, MO_NONE, NULL,
		   "%s submitted by %s, %lld GPU%s", spec->recipe.name,
		   spec->user ? spec->user : "?", (long long)spec->recipe.gpus,
		   spec->recipe.gpus == 1 ? "" : "s");
	turn_reply(t, 201, id, NULL);
}

/* restart --from needs something to restart from. */
static bool from_is_usable(struct turn *t, const struct job *j)
{
	int64_t from = t->input->restart->from_iteration;

	if (from == MO_NONE || from == 0)
		return true;
	if (from < 0 || !j->spec.recipe.checkpoint.dir) {
		turn_reply(t, 409, j->id, "job j-%lld: restart --from: %s", (long long)j->id,
			   from < 0 ? "the iteration must not be negative"
				    : "the recipe has no checkpoint.dir");
		return false;
	}
	if (checkpoint_newest_at_most(j, from, false) == MO_NONE &&
	    !checkpoint_named_suspect(j, from)) {
		turn_reply(t, 409, j->id,
			   "job j-%lld: restart --from %lld: no complete checkpoint at or before "
			   "it %s; take one of 'moectl checkpoints j-%lld', or --from 0 to start "
			   "afresh",
			   (long long)j->id, (long long)from,
			   j->scan.attempt == 0 ? "is known before the job's first start"
						: "is left",
			   (long long)j->id);
		return false;
	}
	return true;
}

/* Its directory, or one above or below it, is another unfinished job's by now. */
static const struct job *now_in_its_directory(const struct core *c, const struct job *j)
{
	const char *dir = j->saves.dir ? j->saves.dir : j->saves.by_config;

	_cleanup_(mo_freep) int64_t *ids = NULL;
	size_t n = dir ? claims_around(c, dir, &ids) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct job *k = job_find(&c->state, ids[i]);

		if (mo_streq(k->saves.dir, dir) || mo_streq(k->saves.by_config, dir) ||
		    (mo_streq(k->spec.user, j->spec.user) && nested(dir, k)))
			return k;
	}
	return NULL;
}

/* A job that is over begins again as it was submitted, with its id, history and ledger. True after
 * an answer that says why it cannot. */
static bool stays_over(struct turn *t, const struct job *j)
{
	const struct job *other = now_in_its_directory(t->core, j);
	const char *cannot = NULL;

	if (j->state == JOB_COMPLETED && t->input->restart->from_iteration == MO_NONE)
		cannot = "it is completed: name the checkpoint that it is to train again from "
			 "(--from N), or submit it with more steps";
	else if (job_time_up(j) <= j->ended_at)
		cannot = "its time limit is used up: submit it again with another one, it resumes "
			 "from what lies in its checkpoint.dir";
	else if (j->let_go != MO_NONE && j->spec.n_argv == 0)
		cannot = "what it was submitted with is not kept any more: submit it again, it "
			 "resumes from what lies in its checkpoint.dir";
	if (cannot) {
		turn_reply(t, 409, j->id, "job j-%lld: cannot restart it: %s", (long long)j->id,
			   cannot);
		return true;
	}
	if (other) {
		turn_reply(t, 409, j->id,
			   "job j-%lld: cannot restart it: its checkpoint.dir is that of j-%lld "
			   "(%s), or lies in it: restart it when j-%lld has ended",
			   (long long)j->id, (long long)other->id, job_state_names[other->state],
			   (long long)other->id);
		return true;
	}
	return no_room(t, "restart", j->spec.user) || no_room_for_text(t, "restart", &j->spec);
}

/* That the verb is about. */
static int64_t verb_job(const struct core_input *in)
{
	switch (in->type) {
	case IN_CANCEL: return in->cancel->job;
	case IN_PAUSE: return in->pause->job;
	case IN_RESUME: return in->resume->job;
	default: return in->restart->job;
	}
}

void job_verb(struct turn *t, int trigger)
{
	static const int intents[] = {
		[V_CANCEL] = INTENT_CANCEL, [V_PAUSE] = INTENT_PAUSE, [V_RESTART] = INTENT_RESTART
	};
	static const char *const reasons[] = {
		[V_CANCEL] = "cancelled", [V_PAUSE] = "paused", [V_RESTART] = "restart asked for"
	};
	const struct core_input *in = t->input;
	int64_t id = verb_job(in);
	const struct job *j = job_find(&t->core->state, id);
	const struct job_row *row;
	_cleanup_(mo_freep) char *reason = NULL;
	int before;

	if (!j) {
		turn_reply(t, 404, MO_NONE, "job j-%lld: no such job; see 'moectl list --all'",
			   (long long)id);
		return;
	}
	if (!in->by.may_all && !mo_streq(in->by.user, j->spec.user)) {
		turn_reply(t, 403, j->id, "job j-%lld: it belongs to %s; an operator may %s it",
			   (long long)j->id, j->spec.user ? j->spec.user : "somebody else",
			   job_trigger_names[trigger]);
		return;
	}
	row = job_row_find(j, trigger);
	if (row->next == NEXT_REFUSE) {
		turn_reply(t, 409, j->id, "job j-%lld: cannot %s it: %s", (long long)j->id,
			   job_trigger_names[trigger], row->text);
		return;
	}
	if (trigger == V_RESTART &&
	    ((job_state_final(j->state) && stays_over(t, j)) || !from_is_usable(t, j)))
		return;
	before = j->state;
	if (trigger == V_RESUME) {
		job_move(t, id, trigger, false, 0, NULL);
	} else {
		reason = mo_printf("%s%s%s", reasons[trigger], in->by.user ? " by " : "",
				   in->by.user ? in->by.user : "");
		job_intent(t, id, intents[trigger],
			   trigger == V_CANCEL && (in->cancel->now ||
						   (j->intent == INTENT_CANCEL && j->intent_now)),
			   trigger == V_RESTART ? in->restart->from_iteration : j->restart_from);
		if (row->next != before || before == JOB_STOPPING)
			job_move(t, id, trigger, false, 0, reason);
	}
	turn_reply(t, 200, id, NULL);
}
