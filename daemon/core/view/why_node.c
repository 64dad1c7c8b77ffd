/* Why a node is as it is: its silence, its findings, steps that nobody stored. Derived from state
 * only. */
#include "daemon/core/view/why_node.h"

#include <stdio.h>

#include "daemon/core/rules/jobs.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/refusal.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/live.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/state/token.h"
#include "daemon/core/view/why_reason.h"
#include "daemon/core/view/why_view.h"

/* a job that runs so long without its first iteration makes no progress */
#define NO_ITERATION_US (600 * 1000000LL)

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
		return now - job_progress_at(s, j) > progress_limit_us(j, 1);
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
			r = why_reason(ret, "readings", "it makes no progress; %s", texts[i]);
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

		if (finding_skipped(c))
			continue;
		_cleanup_(mo_freep) char *name = finding_name(c);
		struct why_reason *r =
			why_reason(w, mo_enum_name(check_state_names, _CHECK_STATE_N, c->state),
				   "%s: %s", name, c->text ? c->text : "");

		for (size_t k = 0; k < c->n_evidence; k++)
			why_evidence(r, "%s", c->evidence[k]);
		if (c->state == CHECK_CRIT && finding_held(n, c))
			why_evidence(r,
				     "the node is new and this check never met such hardware: it "
				     "is reported, cordons nothing and keeps no job away "
				     "(health.learn)");
		if (finding_acked(n, c))
			why_evidence(r,
				     "known to an operator: it keeps no job away before the next "
				     "boot%s",
				     c->count == MO_NONE ? "" : ", unless it counts more");
		else if (health_waived(n, c))
			why_evidence(r,
				     "an operator gave the node work in spite of it: it does not "
				     "drain "
				     "the node again before %s",
				     c->count == MO_NONE ? "it was ok"
							 : "it was ok, or counts more");
	}
}

static void why_strange(const struct node *n, struct why_view *w)
{
	struct why_reason *r =
		why_reason(w, "step-unknown",
			   "it holds a step that this controller never stored; it gets "
			   "no work until that is gone");

	for (size_t i = 0; i < n->strays.n_steps; i++)
		why_evidence(r, "%s: ends by itself, or by moectl resolve %s --kill",
			     n->strays.steps[i], n->strays.steps[i]);
}

void node_why(const struct state *s, const struct node *n, int64_t now, struct why_view *ret)
{
	int state = node_shown_state(n);

	_cleanup_(mo_freep) char *why = node_reason(s, n);
	_cleanup_(refusal_done) struct refusal refusal = { 0 };
	bool refuses = node_refuses(s, n, &refusal);

	ret->verdict =
		mo_printf("%s%s%s", node_state_names[state], why ? ": " : "", why ? why : "");
	ret->since = n->drain.asked        ? n->drain.at
		     : n->state == NODE_UP ? n->registered_at
					   : node_heard_at(s, n);
	if (n->state != NODE_UP)
		why_reason(ret, "silent", "not heard for %lld ms; that is not proof of death",
			   (long long)((now - node_heard_at(s, n)) / 1000));
	if (!n->agent.reconciled)
		why_reason(ret, "unreconciled",
			   "its agent did not say hello since the controller started");
	if (n->drain.asked && n->drain.cordon)
		why_reason(ret, "cordoned", "drained because of a finding: %s", n->drain.reason);
	else if (n->drain.asked)
		why_reason(ret, "drained", "drained by an operator (%s)%s%s",
			   n->drain.when ? n->drain.when : "idle", n->drain.reason ? ": " : "",
			   n->drain.reason ? n->drain.reason : "");
	_cleanup_(mo_freep) char *held = health_held_text(n);
	if (held)
		why_reason(ret, "learning", "%s", held);
	if (health_unlooked(n))
		why_reason(ret, "preflight",
			   "its preflight checks are not done: jobs with health.preflight: "
			   "standard "
			   "wait for them, and what they find may cordon the node");
	why_findings(n, ret);
	if (token_shut_out(s, n->name))
		why_reason(ret, "token-revoked",
			   "its token was revoked: what runs there goes on, but its agent is "
			   "refused until it has another");
	if (n->agent.token_expired)
		why_reason(ret, "token-expired",
			   "its token has expired: what runs there goes on, but it gets no new "
			   "work");
	if (n->strays.any)
		why_strange(n, ret);
	if (n->agent.obeys != MO_NONE && n->agent.obeys > s->epoch)
		why_reason(ret, "later-controller",
			   "its agent obeyed a controller that is later than this state: this "
			   "state is "
			   "an old copy, or the agent's controller is another one; it gets no "
			   "work");
	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);

		for (const struct step *st = j ? step_next(j, n->name, -1) : NULL; st;
		     st = step_next(j, n->name, st->attempt)) {
			struct why_reason *r;

			if (!step_uncertain(s, st))
				continue;
			r = why_reason(ret,
				       st->hung   ? "step-hung"
				       : st->gone ? "fenced"
						  : "unkillable",
				       "j-%lld attempt %lld: %s", (long long)j->id,
				       (long long)st->attempt, step_uncertain(s, st));
			for (size_t p = 0; p < st->n_stuck_pids; p++)
				why_evidence(r, "unkillable pid %lld",
					     (long long)st->stuck_pids[p]);
		}
	}
	if (ret->n_reasons == 0)
		why_reason(ret, "up", "it takes work");
	ret->next = !refuses && held ? health_held_next(n)
				     : mo_strdup(refuses ? refusal.next : "nothing to do");
}
