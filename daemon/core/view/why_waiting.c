/* Why a job waits: whom it is behind, what room there is, what keeps nodes away. The scheduler's
 * own answer, with its evidence. */
#include "daemon/core/view/why_waiting.h"

#include "daemon/core/rules/place.h"
#include "daemon/core/rules/refusal.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/rules/unread.h"
#include "daemon/core/state/health.h"
#include "daemon/core/view/why_reason.h"
#include "daemon/core/view/why_view.h"

static void why_image(const struct node *n, const struct recipe_container *c, struct why_reason *r)
{
	const char *agent = n->agent.version ? n->agent.version : "unknown";

	if (!n->info.images)
		why_evidence(r,
			     "node %s runs no image: its agent (%s) is of an older version or not "
			     "root",
			     n->name, agent);
	else if (c->user == CONTAINER_ROOT && !n->info.image_root)
		why_evidence(r,
			     "node %s has no root in an image (engine.container.user): its agent "
			     "(%s) is "
			     "of an older version, or its kernel gives no user namespaces with an "
			     "overlay "
			     "(sysctl user.max_user_namespaces; Linux 5.11)",
			     n->name, agent);
	else
		why_evidence(r,
			     "node %s lets %s start no container (engine.container.runtime): its "
			     "agent (%s) is of an older version, or `runtimes` of its agent.yaml "
			     "does "
			     "not name it",
			     n->name, c->runtime, agent);
}

static void unfit_nodes(const struct state *s, const struct recipe *recipe, struct why_reason *r)
{
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *n = s->nodes[i];
		_cleanup_(mo_freep) char *finding = health_refusal(n, recipe);
		_cleanup_(refusal_done) struct refusal refusal = { 0 };
		bool no = node_refuses(s, n, &refusal);

		if (node_unfit(s, n))
			why_evidence(r, "node %s takes no work: %s%s%s; %s", n->name,
				     node_unfit(s, n), n->drain.cordon ? " because of " : "",
				     n->drain.cordon && n->drain.reason ? n->drain.reason : "",
				     refusal.next);
		else if (!node_runs_image(n, recipe))
			why_image(n, recipe->engine.container, r);
		else if (finding)
			why_evidence(r, "node %s is not used: %s", n->name, finding);
		else if (no && health_away(n) == 0 && !health_unlooked(n))
			why_evidence(r, "node %s takes no work: %s; %s", n->name, refusal.text,
				     refusal.next);
		else if (recipe->gpu && n->info.n_gpus &&
			 !mo_streq(recipe->gpu, n->info.gpus[0].model))
			why_evidence(r, "node %s has GPUs of type %s", n->name,
				     n->info.gpus[0].model ? n->info.gpus[0].model : "unknown");
	}
}

static void why_unread(const struct job *j, struct why_reason *r)
{
	for (size_t i = 0; i < j->scan.n_unread; i++) {
		_cleanup_(mo_freep) char *path = checkpoint_unread_path(&j->scan.unread[i]);

		if (checkpoint_unread(j, &j->scan.unread[i]))
			why_evidence(r, "%s: %lld bytes", path, (long long)j->scan.unread[i].bytes);
	}
	if (j->scan.unread_more > 0)
		why_evidence(r, "and %lld more", (long long)j->scan.unread_more);
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
	why_evidence(r, "j-%lld (%s) is %s, with priority %lld: %s", (long long)id,
		     ahead->spec.recipe.name, job_state_names[ahead->state],
		     (long long)ahead->spec.recipe.priority, text);
}

static void why_held(const struct state *s, const struct job *j, int64_t id, struct why_reason *r)
{
	const struct job *holder = job_find(s, id);

	if (holder)
		why_evidence(r, "j-%lld (%s) is %s and saves to %s", (long long)id,
			     holder->spec.recipe.name, job_state_names[holder->state],
			     j->saves.dir);
}

static void why_room(const struct state *s, const struct job *j, const struct waiting *w,
		     struct why_reason *r)
{
	struct slots slots;

	why_evidence(r, "%lld suitable GPUs are free, %lld are needed", (long long)w->free,
		     (long long)w->needs);
	slots_init(s, &slots);
	_cleanup_(mo_freep) char *note = place_stack_note(s, &slots, &j->spec.recipe);
	slots_done(&slots);
	if (note)
		why_evidence(r, "%s", note);
	unfit_nodes(s, &j->spec.recipe, r);
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct job *k = job_find(s, s->nodes[i]->spare.job);

		if (k && k != j)
			why_evidence(r, "node %s is kept as a spare of j-%lld (%s)",
				     s->nodes[i]->name, (long long)k->id, k->spec.recipe.name);
	}
}

#define UNHEARD_SHOWN 10

static void why_unheard(const struct state *s, int64_t n_nodes, struct why_reason *r)
{
	int64_t n = 0;

	for (size_t i = 0; i < s->n_nodes && n < UNHEARD_SHOWN; i++) {
		if (!node_awaited(s->nodes[i]))
			continue;
		why_evidence(r, "node %s: its agent says hello by itself, or it is suspect soon",
			     s->nodes[i]->name);
		n++;
	}
	if (n_nodes > n)
		why_evidence(r, "and %lld more", (long long)(n_nodes - n));
}

static void why_checks(const struct job *j, struct why_reason *r)
{
	why_evidence(r, "they take %lld s at most; nodes that are found broken are not used again",
		     (long long)(health_wait_us(j->checks.thorough) / 1000000));
	for (size_t i = 0; i < j->checks.n_nodes; i++)
		why_evidence(r, "node %s: not done yet", j->checks.nodes[i]);
	for (size_t i = 0; i < j->checks.n_done; i++)
		why_evidence(r, "node %s: checked", j->checks.done[i]);
}

static void why_damaged(const struct job *j, struct why_reason *r)
{
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		why_evidence(r, "checkpoint %lld: %s%s%s", (long long)c->iteration,
			     checkpoint_state_names[c->state], c->reason ? ": " : "",
			     c->reason ? c->reason : "");
	}
}

void why_waiting(const struct state *s, const struct job *j, const struct waiting *w, int64_t now,
		 struct why_view *ret)
{
	_cleanup_(mo_freep) char *text = waiting_text(w);
	struct why_reason *r = why_reason(ret, waiting_code_names[w->code], "%s", text);

	switch (w->code) {
	case WAITING_UNHEARD: why_unheard(s, w->nodes, r); break;
	case WAITING_BEHIND: why_ahead(s, w->job, now, r); break;
	case WAITING_DIRECTORY: why_held(s, j, w->job, r); break;
	case WAITING_TOO_LARGE:
	case WAITING_STACK:
	case WAITING_IMAGES:
	case WAITING_NODES:
	case WAITING_CAPACITY: why_room(s, j, w, r); break;
	case WAITING_CHECKS: why_checks(j, r); break;
	case WAITING_UNREAD: why_unread(j, r); break;
	case WAITING_CHECKPOINT: why_damaged(j, r); break;
	default: break;
	}
}
