/* See elsewhere.h. */
#include "daemon/core/rules/elsewhere.h"

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/streak.h"
#include "daemon/core/rules/turn.h"

bool elsewhere_avoids(const struct job *j, const char *node)
{
	for (size_t i = streak_open(j); i < j->n_incidents; i++)
		if (j->incidents[i].elsewhere && mo_streq(j->incidents[i].node, node))
			return true;
	return false;
}

int elsewhere_place(const struct state *s, const struct slots *slots, const struct job *j,
		    struct place **ret, size_t *n_ret, struct waiting *ret_why)
{
	struct recipe away = j->spec.recipe;
	_cleanup_(mo_freep) char **names = NULL;
	size_t n = j->spec.recipe.n_exclude, first = streak_open(j);

	names = mo_alloc_array(n + j->n_incidents - first + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = j->spec.recipe.exclude[i];
	for (size_t i = first; i < j->n_incidents; i++)
		if (j->incidents[i].elsewhere && j->incidents[i].node)
			names[n++] = j->incidents[i].node;
	away.exclude = names;
	away.n_exclude = n;
	if (n > j->spec.recipe.n_exclude && place_in(s, slots, &away, ret, n_ret, NULL) == 0)
		return 0;
	return place_in(s, slots, &j->spec.recipe, ret, n_ret, ret_why);
}

void elsewhere_cordon(struct turn *t, int64_t id, const char *node, const char *what,
		      const char *text)
{
	const struct node *n = node_find(&t->core->state, node);
	_cleanup_(mo_freep) char *finding = mo_printf("%s j-%lld", what, (long long)id),
				 *reason = mo_printf("%s: %s", finding, text);
	struct record r;

	if (!n || n->drain.asked)
		return;
	if (!cordon_room(t->core, false)) {
		event_emit(t, EVENT_HEALTH_CORDON_CAPPED, id, node, MO_NONE, MO_NONE, NULL,
			   "node %s is not cordoned: as many nodes are already as happens by "
			   "itself; %s",
			   node, reason);
		return;
	}
	record_init(&r, REC_DRAIN);
	r.node = mo_strdup(node);
	r.drain->step = DRAIN_ON;
	r.drain->reason = mo_strdup(reason);
	r.drain->when = mo_strdup("idle");
	r.drain->finding = mo_strdup(finding);
	turn_emit(t, &r);
	event_emit(t, EVENT_NODE_DRAINING, id, node, MO_NONE, MO_NONE, NULL,
		   "node %s is cordoned, what runs there runs on: %s", node, reason);
}
