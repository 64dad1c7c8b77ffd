/* Why a job or node is as it is: a verdict, reasons with evidence, and what comes next. Derived
 * from state only. */
#include "daemon/core/view/why.h"

#include <stdio.h>

#include "daemon/core/rules/config.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/rules/policy.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/slot_health.h"
#include "daemon/core/state/space.h"
#include "daemon/core/state/token.h"
#include "daemon/core/view/prepare.h"
#include "daemon/core/view/slow.h"
#include "daemon/core/view/unsaved.h"
#include "daemon/core/view/why_data.h"
#include "daemon/core/view/why_fabric.h"
#include "daemon/core/view/why_incident.h"
#include "daemon/core/view/why_loss.h"
#include "daemon/core/view/why_next.h"
#include "daemon/core/view/why_overdue.h"
#include "daemon/core/view/why_ranks.h"
#include "daemon/core/view/why_reason.h"
#include "daemon/core/view/why_release.h"
#include "daemon/core/view/why_view.h"
#include "daemon/core/view/why_waiting.h"
#include "lib/base/parse.h"

/* a job that runs so long without its first iteration makes no progress */
#define SHOWN_MAX 20 /* ranks whose GPUs, or checkpoints, that are named in one answer */

/* Steps that are not proved dead, and why that is not known. */
static void why_not_gone(const struct state *s, const struct job *j, const struct waiting *w,
			 struct why_view *ret)
{
	_cleanup_(mo_freep) char *text = waiting_text(w);
	struct why_reason *r = why_reason(ret, waiting_code_names[w->code], "%s", text);

	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];

		if (step_dead(st))
			continue;
		why_evidence(r, "attempt %lld on %s: %s", (long long)st->attempt, st->node,
			     step_not_dead(node_find(s, st->node), st));
		if (token_shut_out(s, st->node))
			why_evidence(r,
				     "the agent of %s is refused, its token was revoked: moectl "
				     "why %s",
				     st->node, st->node);
	}
}

/* What the site's command was asked about it, and said. */
static void why_power(const struct node *n, struct why_reason *r)
{
	char at[32];

	switch (n->power.step) {
	case POWER_ASKED:
		why_evidence(r, "fence_command was asked to power it off at %s (try %lld)%s%s",
			     mo_time_format(n->power.at, at), (long long)n->power.tries,
			     n->power.text ? "; the try before: " : "",
			     n->power.text ? n->power.text : "");
		break;
	case POWER_FAILED:
		why_evidence(r, "fence_command did not power it off at %s (try %lld): %s",
			     mo_time_format(n->power.at, at), (long long)n->power.tries,
			     n->power.text ? n->power.text : "it said nothing");
		break;
	case POWER_HELD:
		why_evidence(r, "it is not powered off: more than a tenth of all nodes are silent "
				"at once");
		break;
	default: break;
	}
}

static void why_silent(const struct state *s, const struct job *j, int64_t now, struct why_view *w)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		const struct node *n = node_find(s, st->node);

		if (step_dead(st) || !n)
			continue;
		if (n->state != NODE_UP) {
			struct why_reason *r = why_reason(w, "node-silent", "node %s is %s",
							  n->name, node_state_names[n->state]);

			why_evidence(r, "last heard %lld ms ago; silence is not proof of death",
				     (long long)((now - node_heard_at(s, n)) / 1000));
			why_power(n, r);
		}
		if (token_shut_out(s, n->name))
			why_reason(w, "token-revoked",
				   "the agent of node %s is refused, its token was revoked: moectl "
				   "why %s",
				   n->name, n->name);
		if (n->agent.token_expired && !st->accepted)
			why_reason(w, "token-expired",
				   "node %s does not get the launch: its token has expired",
				   n->name);
		if (n->strays.any && !st->accepted)
			why_reason(w, "step-unknown",
				   "node %s does not get the launch: it holds a step that this "
				   "controller never stored; moectl why %s",
				   n->name, n->name);
		if (!node_runs_image(n, &j->spec.recipe) && !st->accepted)
			why_reason(w, "no-images",
				   "node %s does not get the launch: its agent cannot run an image "
				   "(engine.container) any more; moectl restart j-%lld takes other "
				   "nodes",
				   n->name, (long long)j->id);
		if (st->hung && st->missing)
			why_reason(w, "step-missing",
				   "the agent of %s does not know the step any more: when no "
				   "process "
				   "of it is left there, say moectl resolve j-%lld.a%lld --gone",
				   st->node, (long long)j->id, (long long)st->attempt);
		else if (st->hung)
			why_reason(w, "step-hung",
				   "the step on %s cannot be reached through its supervisor",
				   st->node);
	}
}

static void why_slot(const struct place *p, size_t k, const struct node *n,
		     const struct slot_health *h, struct why_view *w)
{
	_cleanup_(mo_freep) char *words = slot_health_words(h), *name = finding_name(h->finding);
	struct why_reason *r =
		why_reason(w, h->missing ? "gpu-missing" : "gpu-suspect",
			   "rank %lld on %s: its GPU %lld %s: %s", (long long)place_rank(p, k),
			   n->name, (long long)p->gpus[k], h->finding->object, words);

	why_evidence(r, "%s: %s", name, h->finding->text ? h->finding->text : "");
	for (size_t i = 0; i < h->finding->n_evidence; i++)
		why_evidence(r, "%s", h->finding->evidence[i]);
	if (h->count)
		why_evidence(r, "gpu.count %s: %s", h->count->object,
			     h->count->text ? h->count->text : "");
	for (size_t i = 0; h->count && i < h->count->n_evidence; i++)
		why_evidence(r, "%s", h->count->evidence[i]);
	why_evidence(r, "no rank is ended on the word of a check");
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
			if (shown++ < SHOWN_MAX)
				why_slot(p, k, n, &h, w);
			else
				more++;
		}
	}
	if (more)
		why_reason(w, "gpu-suspect", "and %zu more GPUs of the job", more);
	return first;
}

static void why_interval(const struct state *s, const struct job *j, struct why_view *w)
{
	struct interval i;

	mo_desc_init(&interval_desc, &i);
	if (interval_of(s, j, &i))
		why_reason(w, "checkpoint-interval", "checkpoint.every: auto: %s", i.text);
	mo_desc_done(&interval_desc, &i);
}

/* Before somebody changes the sizes: with others nothing of it can be loaded. */
static void why_fixed(const struct job *j, struct why_view *w)
{
	int64_t newest = checkpoint_newest_at_most(j, INT64_MAX, false);
	const struct checkpoint *c = newest == MO_NONE ? NULL : checkpoint_find(j, newest);

	if (c && c->fixed)
		why_reason(w, "checkpoint-fixed",
			   "its checkpoints do not reshard: a resume needs %s, as they were saved",
			   c->fixed);
}

/* They are no condition: the job runs without. */
static void why_spares(const struct state *s, const struct job *j, struct why_view *w)
{
	struct why_reason *r;
	int64_t n = 0;

	if (j->spec.recipe.spares <= 0 || j->run.n_places == 0)
		return;
	for (size_t i = 0; i < s->n_nodes; i++)
		n += s->nodes[i]->spare.job == j->id;
	r = why_reason(w, "spares", "%lld of %lld spare nodes are kept for it%s", (long long)n,
		       (long long)j->spec.recipe.spares,
		       n < j->spec.recipe.spares ? ": no other whole node is free for it" : "");
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *k = s->nodes[i];
		_cleanup_(mo_freep) char *image = NULL;

		if (k->spare.job != j->id)
			continue;
		image = images_words(j, s->lives ? s->lives[i] : NULL);
		why_evidence(r, "node %s: %s%s", k->name,
			     k->spare.passed ? "checked" : "its checks are not done yet", image);
	}
}

/* What attempts died of that loaded it; the newest first. */
static void why_suspect(const struct job *j, struct why_view *w)
{
	for (size_t i = j->n_checkpoints, n = 0; i > 0 && n < SHOWN_MAX; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (c->failed_loads == MO_NONE ||
		    (c->state != CKPT_SUSPECT && !checkpoint_usable(c)))
			continue;
		n++;
		why_evidence(why_reason(w, "checkpoint-suspect",
					c->state == CKPT_SUSPECT
						? "checkpoint %lld is suspect, and not resumed from"
						: "checkpoint %lld is loaded once more",
					(long long)c->iteration),
			     "%s", c->reason ? c->reason : "attempts died that loaded it");
	}
}

static void why_space(const struct job *j, struct why_view *w)
{
	struct space s = space_of(j);
	_cleanup_(mo_freep) char *text = space_text(j, &s);

	if (text)
		why_reason(w, "checkpoint-space", "%s", text);
}

static void why_elsewhere(const struct job *j, struct why_view *w)
{
	struct why_reason *r = NULL;

	if (!j->saves.elsewhere)
		return;
	r = why_reason(w, "saves-elsewhere",
		       "the engine saves where nothing would be resumed from");
	why_evidence(r, "it said that it saved to %s", j->saves.elsewhere);
	why_evidence(r, "checkpoint.dir is %s", j->spec.recipe.checkpoint.dir);
}

static void why_unsaved(const struct job *j, struct why_view *w)
{
	_cleanup_(checkpoint_unsaved_done) struct unsaved u;

	if (checkpoint_unsaved(j, &u))
		why_evidence(why_reason(w, "checkpoint-late", "%s", u.text), "%s", u.last_save);
}

/* Shares of the way, the time that is left and when it is completed go by `steps`. */
static void why_beyond(const struct job *j, struct why_view *w)
{
	_cleanup_(mo_freep) char *beyond = j->state == JOB_RUNNING ? policy_beyond_steps(j) : NULL;

	if (beyond)
		why_reason(w, "steps-exceeded",
			   "%s; it is completed when all its ranks end without an error", beyond);
}

/* Two trees: what was checked and planned at the submit is not what trains. */
static void why_config(const struct job *j, struct why_view *w)
{
	struct why_reason *r;

	if (!config_differs(j))
		return;
	r = why_reason(w, "config-differs",
		       "the engine's files on %s are not those that the submit read: what %s has "
		       "trains",
		       j->config.node, j->config.node);
	why_evidence(r, "the submit read %s, %s has %s", j->spec.recipe.experiment_hash,
		     j->config.node, j->config.hash);
	why_evidence(r, "'moectl explain config j-%lld' shows what trains", (long long)j->id);
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
	why_release(s, j, now, ret);
	why_prepare(j, now, ret);
	why_slots(s, j, ret);
	why_incident(s, j, ret);
	if (waits_for_places(j, w))
		why_waiting(s, j, w, now, ret);
}

void job_why(const struct state *s, const struct job *j, int64_t now, struct why_view *ret)
{
	_cleanup_(waiting_done) struct waiting w;
	bool waits = waiting_of(s, j, now, &w);
	_cleanup_(mo_freep) char *why = waits ? waiting_reason(&w, j) : mo_strdup(j->reason);
	_cleanup_(mo_freep) char *overdue = NULL, *fabric = why_fabric_next(j);
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
		why_release(s, j, now, ret);
		why_prepare(j, now, ret);
		suspect = why_slots(s, j, ret);
		break;
	case JOB_RUNNING:
		why_silent(s, j, now, ret);
		suspect = why_slots(s, j, ret);
		why_progress(s, j, now, ret);
		overdue = why_overdue(s, j, now, ret);
		why_loss(j, ret);
		why_slow(s, j, now, ret);
		if (why_follows_failure(j))
			why_incident(s, j, ret);
		why_unsaved(j, ret);
		why_beyond(j, ret);
		why_interval(s, j, ret);
		break;
	case JOB_RECOVERING:
		why_recovering(s, j, &w, now, ret);
		if (!waits && why_attempt_runs(j))
			overdue = why_overdue(s, j, now, ret);
		break;
	case JOB_STOPPING:
		if (waits)
			why_not_gone(s, j, &w, ret);
		break;
	case JOB_FAILED:
		if (why_ended_by(j))
			why_incident(s, j, ret);
		break;
	default: break;
	}
	why_later(j, ret);
	why_hang(s, j, now, ret);
	if (!job_state_final(j->state))
		why_space(j, ret);
	why_spares(s, j, ret);
	why_elsewhere(j, ret);
	why_config(j, ret);
	if (j->state != JOB_COMPLETED)
		why_suspect(j, ret);
	why_tainted(j, ret);
	why_skips(j, ret);
	why_data_order(j, ret);
	why_fabric(j, ret);
	why_fixed(j, ret);
	if (ret->n_reasons == 0)
		why_reason(ret, job_state_names[j->state], "%s",
			   j->reason ? j->reason : job_state_names[j->state]);
	ret->next = overdue   ? TAKE_PTR(overdue)
		    : suspect ? mo_printf("it runs on until a rank fails; 'moectl drain %s --when "
					  "checkpoint --reason ...' moves it after its next "
					  "checkpoint, 'moectl node %s' shows the findings",
					  suspect, suspect)
		    : j->state == JOB_RUNNING ? why_next_of_running(j)
		    : fabric                  ? TAKE_PTR(fabric)
					      : mo_strdup(why_next(j, &w));
}
