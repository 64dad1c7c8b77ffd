/* See fabric.h. */
#include "daemon/core/rules/fabric.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "lib/base/buf.h"

static void tell(struct turn *t, const struct job *j)
{
	const struct fabric_result *f = &j->fabric->found;
	_cleanup_(mo_freep) char *text = fabric_result_text(f);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_str(&b, "user", j->fabric->by);
	data_str(&b, "verdict", fabric_verdict_names[f->verdict]);
	data_int(&b, "nodes", f->nodes);
	data_int(&b, "odd", (int64_t)f->n_odd);
	event_emit(t, f->verdict == FABRIC_FINE ? EVENT_FABRIC_FINE : EVENT_FABRIC_ODD, j->id, NULL,
		   MO_NONE, j->attempt, data_end(&b), "fabric check %s", text);
}

void job_fabric(struct turn *t)
{
	const struct in_fabric *in = t->input->fabric;
	const struct job *j = job_find(&t->core->state, in->job);
	struct record r;

	if (!j) {
		turn_reply(t, 404, MO_NONE, "job j-%lld: no such job; see 'moectl list --all'",
			   (long long)in->job);
		return;
	}
	record_init(&r, REC_FABRIC);
	r.job = j->id;
	r.fabric->by = mo_strdup(t->input->by.user);
	mo_desc_copy(&fabric_result_desc, &r.fabric->found, &in->found);
	turn_emit(t, &r);
	tell(t, j);
	turn_reply(t, 200, j->id, NULL);
}
