/* See device.h. */
#include "daemon/core/rules/device.h"

#include "daemon/core/rules/turn.h"
#include "daemon/core/state/live.h"

const char *device_of(const struct state *s, const struct blame *b)
{
	const struct node *n = b->rank && b->step ? node_find(s, b->step->node) : NULL;

	for (size_t i = 0; n && i < n->info.n_gpus; i++)
		if (n->info.gpus[i].index == b->rank->gpu)
			return n->info.gpus[i].bdf;
	return NULL;
}

/* The newest of the job that names it, within what is kept of the past, and since the node was
 * given back after such a cordon; NULL: none. */
static const struct incident *named(const struct turn *t, const struct job *j, const char *node,
				    const char *device)
{
	const struct node *n = node_find(&t->core->state, node);
	int64_t kept = t->core->config.history_us;

	for (size_t i = j->n_incidents; i > 0; i--) {
		const struct incident *inc = &j->incidents[i - 1];

		if (mo_streq(inc->device, device) && mo_streq(inc->node, node) &&
		    mo_streq(inc->class, failure_class_names[FAIL_NODE_FAULT]) &&
		    (!kept || t->now - inc->time <= kept) && inc->time > n->drain.forgiven_at)
			return inc;
	}
	return NULL;
}

static const char *said_of(const struct incident *inc)
{
	return inc->n_evidence ? inc->evidence[0] : inc->why ? inc->why : inc->cause;
}

char *device_named_twice(const struct turn *t, const struct job *j, const struct verdict *v,
			 const char *cause)
{
	const struct state *s = &t->core->state;
	const char *device = v->class == FAIL_NODE_FAULT ? device_of(s, &v->blame) : NULL;

	for (size_t i = s->n_jobs; device && i > 0; i--) {
		const struct job *k = s->jobs[i - 1];
		const struct incident *inc = named(t, k, v->blame.step->node, device);

		if (inc)
			return mo_printf("GPU %s is named by two failures: by attempt %lld of "
					 "j-%lld (%s), and by attempt %lld of j-%lld (%s)",
					 device, (long long)inc->attempt, (long long)k->id,
					 said_of(inc), (long long)j->attempt, (long long)j->id,
					 v->n_lines ? v->lines[0] : cause);
	}
	return NULL;
}
