/* See later.h. */
#include "daemon/core/rules/later.h"

#include "daemon/core/rules/elsewhere.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/verdict.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/live.h"
#include "lib/base/buf.h"

#define LATER_US (600 * 1000000LL) /* after a failure it is said of it */

/* The failure that the finding may be of; NULL: none. */
static const struct incident *of_failure(const struct job *j, const char *node,
					 const struct check_result *r, int64_t now)
{
	const struct incident *inc = j && j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;

	if (!inc || now - inc->time > LATER_US || r->since == MO_NONE ||
	    mo_streq(inc->class, failure_class_names[FAIL_NODE_FAULT]) ||
	    r->since < inc->time - VERDICT_NEAR_US || r->since > inc->time + VERDICT_NEAR_US)
		return NULL;
	if (j->attempt > inc->attempt && r->since >= j->run.placed_at && place_of(j, node))
		return NULL; /* of the attempt that runs there now */
	return mo_streq(inc->node, node) || step_find(j, inc->attempt, node) ? inc : NULL;
}

/* of: its check; text: what it says. */
static void tell(struct turn *t, int64_t id, const char *node, const char *of, const char *text,
		 bool broken)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct incident *inc = &j->incidents[j->n_incidents - 1];
	_cleanup_(mo_freep) char *line = mo_printf("%s: %s", node, text),
				 *class = mo_strdup(inc->class);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t attempt = inc->attempt;
	struct record r;

	if (mo_enum_parse((const char *const *)inc->later, inc->n_later, line) >= 0)
		return;
	record_init(&r, REC_CHECK);
	r.job = id;
	r.attempt = attempt;
	r.node = mo_strdup(node);
	r.check->later = true;
	r.check->broken = broken;
	mo_strs_add(&r.check->findings, &r.check->n_findings, line);
	turn_emit(t, &r);
	data_str(&b, "class", class);
	data_str(&b, "check", of);
	event_emit(t, EVENT_INCIDENT_LATER, id, node, MO_NONE, attempt, data_end(&b),
		   "attempt %lld failed as %s; later %s", (long long)attempt, class, line);
	if (broken)
		elsewhere_cordon(t, id, node, FAILURE_CORDON, text);
}

static void found(struct turn *t, const char *node, const struct check_result *r)
{
	const struct core *c = t->core;
	const struct live *l = live_of(c, node);
	size_t n = c->n_unfinished + l->n_jobs;
	_cleanup_(mo_freep) int64_t *ids = mo_alloc_array(n + 1, sizeof(*ids));
	_cleanup_(mo_freep) char *text = NULL;
	bool broken = false;

	for (size_t i = 0; i < n; i++)
		ids[i] = i < l->n_jobs ? l->jobs[i] : c->unfinished[i - l->n_jobs];
	for (size_t i = 0; i < n; i++) {
		if (!of_failure(job_find(&c->state, ids[i]), node, r, t->now))
			continue;
		text = text ? text : verdict_finding(c, r, &broken);
		if (!text)
			return;
		tell(t, ids[i], node, r->check, text, broken);
	}
}

void later_told(struct turn *t, const char *node, const struct node_health *before,
		const struct node_health *h)
{
	const struct node *n = node_find(&t->core->state, node);

	if (!health_equal(n->health, h, true))
		return; /* it was not stored, and will be said again */
	for (size_t i = 0; i < h->n_results; i++) {
		const struct check_result *r = &h->results[i],
					  *old = health_find(before, r->check, r->object);

		if (!finding_skipped(r) &&
		    (!old || health_rank(r->state) > health_rank(old->state)))
			found(t, node, r);
	}
}
