/* See spares.h. */
#include "daemon/core/rules/spares.h"

#include "daemon/core/rules/elsewhere.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/way_back.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/live.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

/* ---- those that there are ---- */

bool spare_check_due(const struct state *s, const struct node *n)
{
	const struct job *j = job_find(s, n->spare.job);

	return j && !n->spare.passed && !health_preflight_none(&j->spec.recipe);
}

/* What was asked for is answered, or there is nobody to answer. */
static bool checked(const struct core *c, const struct node *n, const struct job *j)
{
	const struct live *l = live_of(c, n->name);

	if (health_preflight_none(&j->spec.recipe) || !n->agent.tells_health)
		return true;
	if (!n->health)
		return false;
	return (!health_checks_failures(n) && !(l && l->doubts)) ||
	       health_checked(n->health, j->id, n->spare.asked);
}

/* What a GPU computed is wrong: where no more nodes are cordoned by themselves, it does not train,
 * and is no spare. */
static const struct check_result *computes_wrong(const struct node *n)
{
	const struct check_result *r = way_back_against(n);

	return r && r->state == CHECK_CRIT ? r : NULL;
}

/* Why it does not serve any more; NULL: it does, or is not heard for a moment. Caller frees. */
static char *lost(const struct state *s, const struct slots *slots, size_t at, const struct job *j)
{
	const struct node *n = s->nodes[at];
	bool unheard = n->state == NODE_SUSPECT || (n->state == NODE_UP && !n->agent.reconciled);

	if (!j)
		return mo_strdup("its job is gone");
	if (unheard && !n->drain.asked)
		return NULL;
	if (node_unfit(s, n))
		return mo_strdup(node_unfit(s, n));
	if (computes_wrong(n))
		return finding_name(computes_wrong(n));
	return slots->nodes[at]->usable ? health_refusal(n, &j->spec.recipe)
					: mo_strdup("the end of a step on it is uncertain");
}

static void emit(struct turn *t, int64_t job, const char *node, int step, const char *reason)
{
	struct record r;

	record_init(&r, REC_SPARE);
	r.job = job;
	r.node = mo_strdup(node);
	r.spare->step = step;
	r.spare->reason = mo_strdup(reason);
	turn_emit(t, &r);
}

static bool judge(struct turn *t, const struct slots *slots, size_t at)
{
	const struct node *n = t->core->state.nodes[at];
	int64_t id = n->spare.job;
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *why = lost(&t->core->state, slots, at, j);

	if (why) {
		emit(t, id, n->name, SPARE_LEFT, why);
		event_emit(t, EVENT_JOB_SPARE_LEFT, id, n->name, MO_NONE, MO_NONE, NULL,
			   "node %s is no spare of j-%lld any more: %s", n->name, (long long)id,
			   why);
		return true;
	}
	if (n->spare.passed || n->state != NODE_UP || !checked(t->core, n, j))
		return false;
	emit(t, id, n->name, SPARE_PASSED, NULL);
	event_emit(t, EVENT_JOB_SPARE_PASSED, id, n->name, MO_NONE, MO_NONE, NULL,
		   "node %s, a spare of %s, is checked", n->name, j->spec.recipe.name);
	return true;
}

bool spares_judge(struct turn *t)
{
	const struct state *s = &t->core->state;
	bool emitted = false;

	if (!t->core->n_spares)
		return false;
	t->core->looked += (int64_t)s->n_nodes;
	for (size_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i]->spare.job != MO_NONE)
			emitted |= judge(t, &t->core->slots, i);
	return emitted;
}

/* ---- those that are looked for ---- */

int64_t spares_lacked(const struct state *s, const struct job *j)
{
	bool runs = j->run.n_places > 0 && !j->failure.decided && j->state != JOB_STOPPING;
	int64_t n = runs ? MO_MAX(j->spec.recipe.spares, 0) : 0;

	for (size_t i = 0; n > 0 && i < s->n_nodes; i++)
		n -= s->nodes[i]->spare.job == j->id;
	return n;
}

static size_t largest_place(const struct job *j)
{
	size_t n = 0;

	for (size_t i = 0; i < j->run.n_places; i++)
		n = MO_MAX(n, j->run.places[i].n_gpus);
	return n;
}

static bool same_stack(const struct state *s, const struct job *j, const struct node *n)
{
	const struct node *first = node_find(s, j->run.places[0].node);

	return !health_wants_same_stack(&j->spec.recipe) || !first ||
	       node_same(n) == node_same(first);
}

/* A whole node that does for any of the job's places, of those that failed least; n_nodes: none. */
static size_t find(const struct state *s, const struct slots *slots, const struct job *j)
{
	size_t needed = largest_place(j), best = s->n_nodes;

	mo_assert(slots->job == j->id && needed > 0);
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *n = s->nodes[i];

		if (slots->nodes[i]->spare_of != MO_NONE ||
		    slots->nodes[i]->n_free < n->info.n_gpus ||
		    place_room_on(s, slots, &j->spec.recipe, i) < needed || computes_wrong(n) ||
		    elsewhere_avoids(j, n->name) || !same_stack(s, j, n))
			continue;
		if (best == s->n_nodes || slots->nodes[i]->lemon < slots->nodes[best]->lemon)
			best = i;
	}
	return best;
}

bool spares_fill(struct turn *t, int64_t id, struct slots *slots)
{
	const struct state *s = &t->core->state;
	const struct job *j = job_find(s, id);
	bool emitted = false;

	slots_for(slots, s, j);
	for (int64_t n = spares_lacked(s, j); n > 0; n--) {
		size_t at = find(s, slots, j);

		if (at == s->n_nodes)
			break;
		slots->nodes[at]->spare_of = id;
		emit(t, id, s->nodes[at]->name, SPARE_KEPT, NULL);
		event_emit(t, EVENT_JOB_SPARE_KEPT, id, s->nodes[at]->name, MO_NONE, MO_NONE, NULL,
			   "node %s is kept as a spare of %s", s->nodes[at]->name,
			   j->spec.recipe.name);
		emitted = true;
	}
	return emitted;
}

void spares_images(struct turn *t)
{
	const struct state *s = &t->core->state;

	for (size_t i = 0; t->core->n_spares && i < s->n_nodes; i++) {
		const struct node *n = s->nodes[i];
		const struct job *j = job_find(s, n->spare.job);

		if (j && n->state == NODE_UP)
			images_bring(t, j, n->name);
	}
}

void spares_placed(struct turn *t, const struct job *j, const struct place *places, size_t n_places)
{
	for (size_t i = 0; i < n_places; i++) {
		const struct node *n = node_find(&t->core->state, places[i].node);

		if (n->spare.job == j->id)
			event_emit(t, EVENT_JOB_SPARE_USED, j->id, n->name, MO_NONE,
				   job_next_attempt(j), NULL,
				   "node %s, a spare of %s, %s, takes part in attempt %lld",
				   n->name, j->spec.recipe.name,
				   n->spare.passed ? "checked" : "whose checks are not done",
				   (long long)job_next_attempt(j));
	}
}
