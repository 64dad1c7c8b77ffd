/* See terms.h. Such a time is minutes or days, and few nodes have one: when one is over all nodes
 * are looked at, and then not again within PASS_US, so that thousands that joined within an hour
 * do not cost a pass each when they have learned. */
#include "daemon/core/rules/terms.h"

#include "daemon/core/rules/learn.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/way_back.h"

#define PASS_US 1000000LL

void terms_pass(struct turn *t)
{
	const struct state *s = &t->core->state;
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < s->n_nodes; i++) {
		t->core->looked++;
		next = MO_MIN(next, learn_pass(t, s->nodes[i]));
		next = MO_MIN(next, way_back_pass(t, s->nodes[i]));
	}
	t->core->terms_at = next == INT64_MAX ? next : MO_MAX(next, t->now + PASS_US);
}
