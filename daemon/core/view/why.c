/* Why a job or node is as it is: a verdict, reasons with evidence, and what comes next. Derived
 * from state only. */
#include "daemon/core/view/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/rules/config.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/jobs.h"
#include "daemon/core/rules/place.h"
#include "daemon/core/rules/policy.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/refusal.h"
#include "daemon/core/rules/unread.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/live.h"
#include "daemon/core/state/slot_health.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/view/unsaved.h"

#define EVIDENCE_MAX 20
/* a job that runs so long without its first iteration makes no progress */
#define NO_ITERATION_US (600 * 1000000LL)
#define SLOTS_MAX 20 /* ranks whose GPUs are told of in one answer */

static struct why_reason *reason(struct why_view *w, const char *code, const char *fmt, ...)
	_printf_(3, 4);
static struct why_reason *reason(struct why_view *w, const char *code, const char *fmt, ...)
{
	struct why_reason *r = MO_ADD(w, reasons, &why_reason_desc);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->code = mo_strdup(code);
	r->text = mo_strdup(text);
	return r;
}

static void evidence(struct why_reason *r, const char *fmt, ...) _printf_(2, 3);
static void evidence(struct why_reason *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (r->n_evidence >= EVIDENCE_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mo_strs_add(&r->evidence, &r->n_evidence, text);
}

static void unfit_nodes(const struct state *s, const struct recipe *recipe, struct why_reason *r)
{
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *n = &s->nodes[i];
		_cleanup_(mo_freep) char *finding = health_refusal(n, recipe);
		_cleanup_(refusal_done) struct refusal refusal = { 0 };
		bool no = node_refuses(s, n, &refusal);

		if (node_unfit(s, n))
			evidence(r, "node %s takes no work: %s%s%s; %s", n->name, node_unfit(s, n),
				 n->cordon ? " because of " : "",
				 n->cordon && n->drain_reason ? n->drain_reason : "", refusal.next);
		else if (finding)
			evidence(r, "node %s is not used: %s", n->name, finding);
		else if (no && health_away(n) == 0 && !health_unlooked(n))
			evidence(r, "node %s takes no work: %s; %s", n->name, refusal.text,
				 refusal.next);
		else if (recipe->gpu && n->info.n_gpus &&
			 !mo_streq(recipe->gpu, n->info.gpus[0].model))
			evidence(r, "node %s has GPUs of type %s", n->name,
				 n->info.gpus[0].model ? n->info.gpus[0].model : "unknown");
	}
}

static void why_unread(const struct job *j, struct why_reason *r)
{
	for (size_t i = 0; i < j->scan.n_unread; i++) {
		_cleanup_(mo_freep) char *path = checkpoint_unread_path(&j->scan.unread[i]);

		if (checkpoint_unread(j, &j->scan.unread[i]))
			evidence(r, "%s: %lld bytes", path, (long long)j->scan.unread[i].bytes);
	}
	if (j->scan.unread_more > 0)
		evidence(r, "and %lld more", (long long)j->scan.unread_more);
}

/* The job ahead, and what that waits for. */
static void why_ahead(const struct state *s, int64_t id, int64_t now, struct why_reason *r)
{
	const struct job *ahead = job_find(s, id);
	struct waiting w;

	if (!ahead || !waiting_of(s, ahead, now, &w))
		return;
	_cleanup_(mo_freep) char *text = waiting_text(&w);

	waiting_done(&w);
	evidence(r, "j-%lld (%s) is %s, with priority %lld: %s", (long long)id,
		 ahead->spec.recipe.name, job_state_names[ahead->state],
		 (long long)ahead->spec.recipe.priority, text);
}

static void why_held(const struct state *s, const struct job *j, int64_t id, struct why_reason *r)
{
	const struct job *holder = job_find(s, id);

	if (holder)
		evidence(r, "j-%lld (%s) is %s and saves to %s", (long long)id,
			 holder->spec.recipe.name, job_state_names[holder->state],
			 j->spec.recipe.checkpoint.dir);
}

static void why_room(const struct state *s, const struct job *j, const struct waiting *w,
		     struct why_reason *r)
{
	struct slots slots;

	evidence(r, "%lld suitable GPUs are free, %lld are needed", (long long)w->free,
		 (long long)w->needs);
	slots_init(s, &slots);
	_cleanup_(mo_freep) char *note = place_stack_note(s, &slots, &j->spec.recipe);
	slots_done(&slots);
	if (note)
		evidence(r, "%s", note);
	unfit_nodes(s, &j->spec.recipe, r);
}

static void why_checks(const struct job *j, struct why_reason *r)
{
	evidence(r, "they take %lld s at most; nodes that are found broken are not used again",
		 (long long)(HEALTH_CHECK_US / 1000000));
	for (size_t i = 0; i < j->checks.n_nodes; i++)
		evidence(r, "node %s: not done yet", j->checks.nodes[i]);
	for (size_t i = 0; i < j->checks.n_done; i++)
		evidence(r, "node %s: checked", j->checks.done[i]);
}

static void why_damaged(const struct job *j, struct why_reason *r)
{
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		evidence(r, "checkpoint %lld: %s%s%s", (long long)c->iteration,
			 checkpoint_state_names[c->state], c->reason ? ": " : "",
			 c->reason ? c->reason : "");
	}
}

/* What the job waits for, in the words of the queue, with the evidence of now. */
static void why_waiting(const struct state *s, const struct job *j, const struct waiting *w,
			int64_t now, struct why_view *ret)
{
	_cleanup_(mo_freep) char *text = waiting_text(w);
	struct why_reason *r = reason(ret, waiting_code_names[w->code], "%s", text);

	switch (w->code) {
	case WAITING_BEHIND: why_ahead(s, w->job, now, r); break;
	case WAITING_DIRECTORY: why_held(s, j, w->job, r); break;
	case WAITING_TOO_LARGE:
	case WAITING_STACK:
	case WAITING_NODES:
	case WAITING_CAPACITY: why_room(s, j, w, r); break;
	case WAITING_CHECKS: why_checks(j, r); break;
	case WAITING_UNREAD: why_unread(j, r); break;
	case WAITING_CHECKPOINT: why_damaged(j, r); break;
	default: break;
	}
}

/* Steps that are not proved dead, and why that is not known. */
static void why_not_gone(const struct state *s, const struct job *j, const struct waiting *w,
			 struct why_view *ret)
{
	_cleanup_(mo_freep) char *text = waiting_text(w);
	struct why_reason *r = reason(ret, waiting_code_names[w->code], "%s", text);

	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];

		if (!step_dead(st))
			evidence(r, "attempt %lld on %s: %s", (long long)st->attempt, st->node,
				 step_not_dead(node_find(s, st->node), st));
	}
}

static void why_silent(const struct state *s, const struct job *j, int64_t now, struct why_view *w)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		const struct node *n = node_find(s, st->node);

		if (step_dead(st) || !n)
			continue;
		if (n->state != NODE_UP)
			evidence(reason(w, "node-silent", "node %s is %s", n->name,
					node_state_names[n->state]),
				 "last heard %lld ms ago; silence is not proof of death",
				 (long long)((now - node_heard_at(s, n)) / 1000));
		if (n->token_expired && !st->accepted)
			reason(w, "token-expired",
			       "node %s does not get the launch: its token has expired", n->name);
		if (n->strange_steps && !st->accepted)
			reason(w, "step-unknown",
			       "node %s does not get the launch: it holds a step that this "
			       "controller never stored; moectl why %s",
			       n->name, n->name);
		if (st->hung && st->missing)
			reason(w, "step-missing",
			       "the agent of %s does not know the step any more: when no process "
			       "of it is left there, say moectl resolve j-%lld.a%lld --gone",
			       st->node, (long long)j->id, (long long)st->attempt);
		else if (st->hung)
			reason(w, "step-hung",
			       "the step on %s cannot be reached through its supervisor", st->node);
	}
}

static void why_slot(const struct place *p, size_t k, const struct node *n,
		     const struct slot_health *h, struct why_view *w)
{
	_cleanup_(mo_freep) char *words = slot_health_words(h), *name = finding_name(h->finding);
	struct why_reason *r =
		reason(w, h->missing ? "gpu-missing" : "gpu-suspect",
		       "rank %lld on %s: its GPU %lld %s: %s", (long long)place_rank(p, k), n->name,
		       (long long)p->gpus[k], h->finding->object, words);

	evidence(r, "%s: %s", name, h->finding->text ? h->finding->text : "");
	for (size_t i = 0; i < h->finding->n_evidence; i++)
		evidence(r, "%s", h->finding->evidence[i]);
	if (h->count)
		evidence(r, "gpu.count %s: %s", h->count->object,
			 h->count->text ? h->count->text : "");
	for (size_t i = 0; h->count && i < h->count->n_evidence; i++)
		evidence(r, "%s", h->count->evidence[i]);
	evidence(r, "no rank is ended on the word of a check");
}

/* What checks say of the GPUs that the job's ranks run on. Returns the first node that has such
 * a GPU, NULL = none. */
static const char *why_slots(const struct state *s, const struct job *j, struct why_view *w)
{
	const char *first = NULL;
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct place *p = &j->run.places[i];
		const struct node *n = node_find(s, p->node);
		const struct step *st = step_find(j, j->attempt, p->node);
		struct slot_health h;

		for (size_t k = 0; n && n->health && n->health->n_results && st && !step_dead(st) &&
				   k < p->n_gpus;
		     k++) {
			if (!slot_health(n, p->gpus[k], &h) || !slot_matters(&h))
				continue;
			first = first ? first : n->name;
			if (shown++ < SLOTS_MAX)
				why_slot(p, k, n, &h, w);
			else
				more++;
		}
	}
	if (more)
		reason(w, "gpu-suspect", "and %zu more GPUs of the job", more);
	return first;
}

static void why_incident(const struct job *j, struct why_view *w)
{
	const struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;
	struct why_reason *r;

	if (!inc)
		return;
	r = reason(w, inc->class ? inc->class : "failure", "attempt %lld: %s%s%s",
		   (long long)inc->attempt, inc->cause ? inc->cause : "failed",
		   inc->node ? " on " : "", inc->node ? inc->node : "");
	if (inc->first_rank != MO_NONE)
		evidence(r, "rank %lld died first", (long long)inc->first_rank);
	for (size_t i = 0; i < inc->n_evidence; i++)
		evidence(r, "%s", inc->evidence[i]);
}

/* The failure that ended the job; NULL: it ended otherwise, whatever earlier attempts met. */
static const struct incident *ended_by(const struct job *j)
{
	const struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;

	return inc && inc->attempt == j->attempt ? inc : NULL;
}

/* The last words of a rank whose GPU had no more memory. */
static bool out_of_memory(const struct incident *inc)
{
	static const char *const words[] = {
		"HIP out of memory",           "CUDA out of memory",  "HIP error: out of memory",
		"CUDA error: out of memory",   "hipErrorOutOfMemory", "torch.OutOfMemoryError",
		"torch.cuda.OutOfMemoryError", "RESOURCE_EXHAUSTED"
	};

	for (size_t i = 0; inc && i < inc->n_evidence; i++)
		for (size_t k = 0; k < ELEMENTSOF(words); k++)
			if (strstr(inc->evidence[i], words[k]))
				return true;
	return false;
}

/* What helps: the same submit again does not help against an error of the user's. */
static const char *next_of_failed(const struct job *j)
{
	const struct incident *inc = ended_by(j);
	bool kept = j->saves.dir && state_newest_checkpoint(j) != MO_NONE &&
		    j->spec.recipe.checkpoint.resume != -2;

	if (j->saves.elsewhere)
		return "submit it with checkpoint.dir of the place where the engine saves; as it "
		       "is, it fails again";
	if (inc && mo_streq(inc->class, "user_error") && mo_streq(inc->cause, "prepare"))
		return "mend what engine.prepare said, then submit it again; as it is, it fails "
		       "again";
	if (out_of_memory(inc))
		return "its GPU memory did not suffice: take less of it (a smaller batch.micro, "
		       "recompute: full, more of tp, pp, ep or cp, sharding zero1 to zero3; "
		       "'moectl plan' shows what fits), then submit it again";
	if (inc && mo_streq(inc->class, "user_error"))
		return "mend what the reason names, then submit it again; as it is, it fails again";
	if (j->reason && mo_starts_with(j->reason, ENDED_EARLY))
		return "its ranks ended without an error before `steps`: mend that (moectl logs "
		       "says what they did last), or give the steps that it makes, and submit it "
		       "again";
	if (kept)
		return "mend what ended it, then submit it again: that goes on from its last "
		       "checkpoint";
	return "mend what ended it, then submit it again";
}

/* Nobody looked when nothing was announced: what a script saved without a word is not denied. */
static const char *next_of_completed(const struct job *j)
{
	_cleanup_(mo_freep) char *beyond = policy_beyond_steps(j);

	if (beyond)
		return "nothing follows; before the next submit, give its program {steps} in "
		       "engine.args, or `steps` the number that it makes";
	if (!j->saves.dir || j->spec.recipe.steps == MO_NONE ||
	    j->spec.recipe.checkpoint.resume == -2)
		return "nothing follows; submit it again to run it again";
	if (j->n_checkpoints == 0 && j->scan.n_unread == 0 && !j->scan.at_end)
		return "nothing follows; no checkpoint of it is known: the same recipe begins at "
		       "0, unless checkpoint.dir holds one";
	return "nothing follows; the same recipe resumes from its last checkpoint: give it more "
	       "steps, or start afresh with '--set checkpoint.resume=never'";
}

static const char *next_of(const struct job *j, const struct waiting *w)
{
	if (w->code == WAITING_UNREAD)
		return checkpoint_unread_next(j);
	if (w->code != WAITING_NOT && j->state != JOB_STOPPING)
		return waiting_kinds[w->code].next;
	switch (j->state) {
	case JOB_QUEUED: return waiting_kinds[WAITING_NOT].next;
	case JOB_STARTING: return "it runs when every rank was started";
	case JOB_RECOVERING: return "the next attempt starts by itself";
	case JOB_STOPPING: return "it ends when every rank is proved gone";
	case JOB_PAUSED: return "say 'moectl resume' to go on";
	case JOB_FAILED: return next_of_failed(j);
	case JOB_COMPLETED: return next_of_completed(j);
	default: return "nothing follows; submit it again to run it again";
	}
}

static void why_interval(const struct state *s, const struct job *j, struct why_view *w)
{
	struct interval i;

	mo_desc_init(&interval_desc, &i);
	if (interval_of(s, j, &i))
		reason(w, "checkpoint-interval", "checkpoint.every: auto: %s", i.text);
	mo_desc_done(&interval_desc, &i);
}

/* Before somebody changes the sizes: with others nothing of it can be loaded. */
static void why_fixed(const struct job *j, struct why_view *w)
{
	int64_t newest = checkpoint_newest_at_most(j, INT64_MAX, false);
	const struct checkpoint *c = newest == MO_NONE ? NULL : checkpoint_find(j, newest);

	if (c && c->fixed)
		reason(w, "checkpoint-fixed",
		       "its checkpoints do not reshard: a resume needs %s, as they were saved",
		       c->fixed);
}

static void why_elsewhere(const struct job *j, struct why_view *w)
{
	struct why_reason *r = NULL;

	if (!j->saves.elsewhere)
		return;
	r = reason(w, "saves-elsewhere", "the engine saves where nothing would be resumed from");
	evidence(r, "it said that it saved to %s", j->saves.elsewhere);
	evidence(r, "checkpoint.dir is %s", j->spec.recipe.checkpoint.dir);
}

static void why_unsaved(const struct job *j, struct why_view *w)
{
	_cleanup_(checkpoint_unsaved_done) struct unsaved u;

	if (checkpoint_unsaved(j, &u))
		evidence(reason(w, "checkpoint-late", "%s", u.text), "%s", u.last_save);
}

/* What a running job needs of a person. */
static char *next_of_running(const struct job *j)
{
	_cleanup_(checkpoint_unsaved_done) struct unsaved u;

	if (!checkpoint_unsaved(j, &u))
		return mo_strdup("nothing to do");
	_cleanup_(mo_freep) char *back = u.base > 0 ? mo_printf("iteration %lld", (long long)u.base)
						    : mo_strdup("the beginning");

	return mo_printf("a failure now goes back to %s: see that it saves into checkpoint.dir "
			 "('moectl logs j-%lld', 'moectl events j-%lld')",
			 back, (long long)j->id, (long long)j->id);
}

/* Shares of the way, the time that is left and when it is completed go by `steps`. */
static void why_beyond(const struct job *j, struct why_view *w)
{
	_cleanup_(mo_freep) char *beyond = j->state == JOB_RUNNING ? policy_beyond_steps(j) : NULL;

	if (beyond)
		reason(w, "steps-exceeded",
		       "%s; it is completed when all its ranks end without an error", beyond);
}

/* Two trees: what was checked and planned at the submit is not what trains. */
static void why_config(const struct job *j, struct why_view *w)
{
	struct why_reason *r;

	if (!config_differs(j))
		return;
	r = reason(w, "config-differs",
		   "the engine's files on %s are not those that the submit read: what %s has "
		   "trains",
		   j->config.node, j->config.node);
	evidence(r, "the submit read %s, %s has %s", j->spec.recipe.experiment_hash, j->config.node,
		 j->config.hash);
	evidence(r, "'moectl explain config j-%lld' shows what trains", (long long)j->id);
}

/* Waits for an attempt: its places are not found yet, or not given. */
static bool waits_for_places(const struct job *j, const struct waiting *w)
{
	return j->run.n_places == 0 && w->code != WAITING_NOT_GONE && w->code != WAITING_SILENT;
}

static void why_recovering(const struct state *s, const struct job *j, const struct waiting *w,
			   int64_t now, struct why_view *ret)
{
	if (w->code == WAITING_SILENT)
		why_waiting(s, j, w, now, ret);
	if (w->code == WAITING_NOT_GONE)
		why_not_gone(s, j, w, ret);
	why_silent(s, j, now, ret);
	why_prepare(j, now, ret);
	why_slots(s, j, ret);
	why_incident(j, ret);
	if (waits_for_places(j, w))
		why_waiting(s, j, w, now, ret);
}

void job_why(const struct state *s, const struct job *j, int64_t now, struct why_view *ret)
{
	_cleanup_(waiting_done) struct waiting w;
	bool waits = waiting_of(s, j, now, &w);
	_cleanup_(mo_freep) char *why = waits ? waiting_reason(&w, j) : mo_strdup(j->reason);
	const char *suspect = NULL;

	ret->verdict =
		mo_printf("%s%s%s", job_state_names[j->state], why ? ": " : "", why ? why : "");
	ret->since = j->state_since;
	switch (j->state) {
	case JOB_QUEUED:
		if (w.code == WAITING_NOT_GONE)
			why_not_gone(s, j, &w, ret);
		else
			why_waiting(s, j, &w, now, ret);
		break;
	case JOB_STARTING:
		why_silent(s, j, now, ret);
		why_prepare(j, now, ret);
		suspect = why_slots(s, j, ret);
		break;
	case JOB_RUNNING:
		why_silent(s, j, now, ret);
		suspect = why_slots(s, j, ret);
		if (j->progress.iteration != MO_NONE)
			reason(ret, "progress", "iteration %lld, %lld ms ago",
			       (long long)j->progress.iteration,
			       (long long)((now - job_progress_at(s, j)) / 1000));
		why_unsaved(j, ret);
		why_beyond(j, ret);
		why_interval(s, j, ret);
		break;
	case JOB_RECOVERING: why_recovering(s, j, &w, now, ret); break;
	case JOB_STOPPING:
		if (waits)
			why_not_gone(s, j, &w, ret);
		break;
	case JOB_FAILED:
		if (ended_by(j))
			why_incident(j, ret);
		break;
	default: break;
	}
	why_elsewhere(j, ret);
	why_config(j, ret);
	why_fixed(j, ret);
	if (ret->n_reasons == 0)
		reason(ret, job_state_names[j->state], "%s",
		       j->reason ? j->reason : job_state_names[j->state]);
	ret->next = suspect ? mo_printf("it runs on until a rank fails; 'moectl drain %s --when "
					"checkpoint --reason ...' moves it after its next "
					"checkpoint, 'moectl node %s' shows the findings",
					suspect, suspect)
		    : j->state == JOB_RUNNING ? next_of_running(j)
					      : mo_strdup(next_of(j, &w));
}

static bool makes_no_progress(const struct state *s, const struct job *j, int64_t now)
{
	if (j->run.n_places == 0 || job_state_final(j->state) || j->state == JOB_QUEUED ||
	    j->state == JOB_PAUSED)
		return false;
	for (size_t i = 0; i < j->n_steps; i++)
		if (j->steps[i].attempt == j->attempt && j->steps[i].hung &&
		    !step_dead(&j->steps[i]))
			return true;
	if (j->state == JOB_RUNNING && j->progress.iteration != MO_NONE)
		return now - job_progress_at(s, j) > MO_MAX(STALL_MIN_US, 3 * samples_step_us(j));
	return j->state == JOB_RUNNING ? now - j->state_since > NO_ITERATION_US
				       : j->failure.decided || j->failure.waiting_node;
}

void core_why_readings(const struct core *c, const struct job *j, int64_t now, struct why_view *ret)
{
	struct why_reason *r = NULL;
	char **texts = NULL;
	size_t n = 0;

	if (makes_no_progress(&c->state, j, now))
		core_readings(c, j, now, &texts, &n);
	for (size_t i = 0; i < n; i++) {
		if (!r)
			r = reason(ret, "readings", "it makes no progress; %s", texts[i]);
		else
			mo_strs_add(&r->evidence, &r->n_evidence, texts[i]);
		free(texts[i]);
	}
	free(texts);
}

static void why_findings(const struct node *n, struct why_view *w)
{
	for (size_t i = 0; n->health && i < n->health->n_results && w->n_reasons < 50; i++) {
		const struct check_result *c = &n->health->results[i];
		_cleanup_(mo_freep) char *name = finding_name(c);
		struct why_reason *r =
			reason(w, mo_enum_name(check_state_names, _CHECK_STATE_N, c->state),
			       "%s: %s", name, c->text ? c->text : "");

		for (size_t k = 0; k < c->n_evidence; k++)
			evidence(r, "%s", c->evidence[k]);
		if (c->state == CHECK_CRIT && finding_held(n, c))
			evidence(r, "the node is new and this check never met such hardware: it is "
				    "told, cordons nothing and keeps no job away (health.learn)");
		if (finding_acked(n, c))
			evidence(r,
				 "known to an operator: it keeps no job away before the next "
				 "boot%s",
				 c->count == MO_NONE ? "" : ", unless it counts more");
		else if (health_waived(n, c))
			evidence(r,
				 "an operator gave the node work in spite of it: it does not drain "
				 "the node again before %s",
				 c->count == MO_NONE ? "it was ok" : "it was ok, or counts more");
	}
}

static void why_strange(const struct node *n, struct why_view *w)
{
	struct why_reason *r = reason(w, "step-unknown",
				      "it holds a step that this controller never stored; it gets "
				      "no work until that is gone");

	for (size_t i = 0; i < n->n_strange; i++)
		evidence(r, "%s: ends by itself, or by moectl resolve %s --kill", n->strange[i],
			 n->strange[i]);
}

void node_why(const struct state *s, const struct node *n, int64_t now, struct why_view *ret)
{
	int state = node_shown_state(s, n);

	_cleanup_(mo_freep) char *why = node_reason(s, n);
	_cleanup_(refusal_done) struct refusal refusal = { 0 };
	bool refuses = node_refuses(s, n, &refusal);

	ret->verdict =
		mo_printf("%s%s%s", node_state_names[state], why ? ": " : "", why ? why : "");
	ret->since = n->drain              ? n->drain_at
		     : n->state == NODE_UP ? n->registered_at
					   : node_heard_at(s, n);
	if (n->state != NODE_UP)
		reason(ret, "silent", "not heard for %lld ms; that is not proof of death",
		       (long long)((now - node_heard_at(s, n)) / 1000));
	if (!n->reconciled)
		reason(ret, "unreconciled",
		       "its agent did not say hello since the controller started");
	if (n->drain && n->cordon)
		reason(ret, "cordoned", "drained because of a finding: %s", n->drain_reason);
	else if (n->drain)
		reason(ret, "drained", "drained by an operator (%s)%s%s",
		       n->drain_when ? n->drain_when : "idle", n->drain_reason ? ": " : "",
		       n->drain_reason ? n->drain_reason : "");
	_cleanup_(mo_freep) char *held = health_held_text(n);
	if (held)
		reason(ret, "learning", "%s", held);
	if (health_unlooked(n))
		reason(ret, "preflight",
		       "its preflight checks are not done: jobs with health.preflight: standard "
		       "wait for them, and what they find may cordon the node");
	why_findings(n, ret);
	if (n->token_expired)
		reason(ret, "token-expired",
		       "its token has expired: what runs there goes on, but it gets no new work");
	if (n->strange_steps)
		why_strange(n, ret);
	if (n->obeys != MO_NONE && n->obeys > s->epoch)
		reason(ret, "later-controller",
		       "its agent obeyed a controller that is later than this state: this state is "
		       "an old copy, or the agent's controller is another one; it gets no work");
	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);

		for (const struct step *st = j ? step_next(j, n->name, -1) : NULL; st;
		     st = step_next(j, n->name, st->attempt)) {
			struct why_reason *r;

			if (!step_uncertain(s, st))
				continue;
			r = reason(ret,
				   st->hung   ? "step-hung"
				   : st->gone ? "fenced"
					      : "unkillable",
				   "j-%lld attempt %lld: %s", (long long)j->id,
				   (long long)st->attempt, step_uncertain(s, st));
			for (size_t p = 0; p < st->n_stuck_pids; p++)
				evidence(r, "unkillable pid %lld", (long long)st->stuck_pids[p]);
		}
	}
	if (ret->n_reasons == 0)
		reason(ret, "up", "it takes work");
	ret->next = !refuses && held ? health_held_next(n)
				     : mo_strdup(refuses ? refusal.next : "nothing to do");
}
