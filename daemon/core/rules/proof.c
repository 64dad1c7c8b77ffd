/* Steps that are proved gone without a note of their own supervisor: by a changed boot id, by a
 * fence, by the attempt after them on their node. Silence is none of these. */
#include "daemon/core/rules/proof.h"

#include "daemon/core/rules/turn.h"

void proof_step(struct turn *t, int64_t job, const struct step *st, const char *how)
{
	struct record r;

	record_init(&r, REC_GONE);
	r.job = job;
	r.attempt = st->attempt;
	r.node = mo_strdup(st->node);
	r.gone->how = mo_strdup(how);
	turn_emit(t, &r);
}

/* boot NULL: every step of the node (fence); else those of other boots. */
void proof_node(struct turn *t, const char *node, const char *boot, const char *how)
{
	const struct live *l = core_live(t->core, node);

	for (size_t i = 0; i < l->n_jobs; i++) {
		const struct job *j = job_find(&t->core->state, l->jobs[i]);

		for (const struct step *st = j ? step_next(j, node, -1) : NULL; st;
		     st = step_next(j, node, st->attempt))
			if (!st->gone && !(boot && mo_streq(st->boot_id, boot)))
				proof_step(t, j->id, st, how);
	}
}
