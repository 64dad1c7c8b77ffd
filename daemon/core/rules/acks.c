/* What a reply says of what is stored: through which note each step is acknowledged, which health
 * is known. */
#include "daemon/core/rules/acks.h"

#include <string.h>

#include "daemon/core/rules/strays.h"
#include "lib/base/assert.h"

/* What the agent need not say again. */
static int64_t health_version(const struct core *c, const char *node, const struct live *l)
{
	const struct node *n = node_find(&c->state, node);

	if (l->health_seen != MO_NONE)
		return l->health_seen;
	return n->health ? n->health->version : MO_NONE;
}

void core_acks(const struct core *c, const char *node, struct sync_reply *ret)
{
	const struct live *l = live_of(c, node);

	mo_assert(node && ret);
	ret->epoch = c->state.epoch;
	if (l)
		ret->health = health_version(c, node, l);
	for (size_t i = 0; l && i < l->n_jobs; i++) {
		const struct job *j = job_find(&c->state, l->jobs[i]);

		for (const struct step *st = j ? step_next(j, node, -1) : NULL; st;
		     st = step_next(j, node, st->attempt))
			*MO_ADD(ret, acks, &step_ack_desc) =
				(struct step_ack){ .job = j->id,
						   .attempt = st->attempt,
						   .through = st->through,
						   .known = true };
	}
	for (size_t i = 0; l && i < l->n_strays; i++) {
		const struct stray *s = &l->strays[i];
		bool forget = stray_command(c, node, s) == CMD_FORGET;

		*MO_ADD(ret, acks, &step_ack_desc) =
			(struct step_ack){ .job = s->job,
					   .attempt = s->attempt,
					   .through = forget ? s->written : 0,
					   .known = forget };
	}
}
