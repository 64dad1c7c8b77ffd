/* See update_power.h. */
#include "daemon/core/update/update_power.h"

#include <errno.h>

#include "daemon/core/update/edit.h"

int update_power(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);

	if (!n)
		return -EINVAL;
	n->power.step = r->power->step;
	n->power.at = r->time;
	if (r->power->step == POWER_ASKED)
		n->power.tries = MO_MAX(n->power.tries, 0) + 1;
	if (r->power->step != POWER_ASKED) /* what was said last, until it says more */
		mo_str_set(&n->power.text, r->power->text);
	return 0;
}

void power_forget(struct node *n)
{
	n->power.step = -1;
	n->power.tries = n->power.at = MO_NONE;
	mo_str_set(&n->power.text, NULL);
}

/* Ranks of a silent node are shown as lost; their job is judged again. */
