/* See why_fabric.h. */
#include "daemon/core/view/why_fabric.h"

#include "daemon/core/view/why_incident.h"
#include "daemon/core/view/why_reason.h"
#include "lib/base/parse.h"

void why_fabric(const struct job *j, struct why_view *w)
{
	const struct fabric_check *f = j->fabric;
	_cleanup_(mo_freep) char *text = f ? fabric_result_text(&f->found) : NULL;
	struct why_reason *r;
	char at[32];

	if (!f)
		return;
	r = why_reason(w, "fabric", "fabric check %s", text);
	why_evidence(r, "told by %s at %s", f->by ? f->by : "somebody",
		     mo_time_format(f->time, at));
	for (size_t i = 0; i < f->found.n_odd; i++) {
		const struct fabric_odd *o = &f->found.odd[i];

		why_evidence(r, "%s%s%s: %s", o->node, o->peer ? " with " : "",
			     o->peer ? o->peer : "", o->evidence);
	}
}

char *why_fabric_next(const struct job *j)
{
	const struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;
	_cleanup_(mo_freep) char *check = mo_printf("'moectl fabric check RECIPE --job j-%lld' "
						    "looks whether a node or a link "
						    "of its nodes makes it hang",
						    (long long)j->id);

	if (!inc || !why_hang_without_cause(inc) || (j->fabric && j->fabric->time >= inc->time))
		return NULL;
	switch (j->state) {
	case JOB_RUNNING:
		return why_follows_failure(j)
			       ? mo_printf("nothing to do; if it hangs again, 'moectl "
					   "pause j-%lld', then %s",
					   (long long)j->id, check)
			       : NULL;
	case JOB_PAUSED: return mo_printf("%s; then say 'moectl resume' to go on", check);
	case JOB_FAILED:
		return inc->attempt == j->attempt ? mo_printf("%s; then 'moectl restart j-%lld'",
							      check, (long long)j->id)
						  : NULL;
	default: return NULL;
	}
}
