/* See update_straggler.h. */
#include "daemon/core/update/update_straggler.h"

#include <errno.h>

#include "daemon/core/state/live.h"
#include "daemon/core/update/edit.h"

void straggler_clear(struct job_straggler *g)
{
	g->rank = g->at = MO_NONE;
	g->sign = -1;
	g->alone = false;
	g->times = g->lost_pct = MO_NONE_F;
	mo_str_set(&g->text, NULL);
	mo_strs_clear(&g->evidence, &g->n_evidence);
}

static void remember(struct job *j, const struct record *r)
{
	struct job_straggler *g = &j->straggler;

	while (g->n_found >= STRAGGLERS_MAX)
		mo_vec_remove(&found_straggler_desc, g->found, &g->n_found, 0);
	*(struct found_straggler *)mo_vec_add(&found_straggler_desc, (void **)&g->found,
					      &g->n_found) =
		(struct found_straggler){ .attempt = j->attempt,
					  .rank = r->straggler->rank,
					  .at = r->time,
					  .node = mo_strdup(j->run.ranks[r->straggler->rank].node),
					  .lost_pct = r->straggler->lost_pct };
}

int update_straggler(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	const struct rec_straggler *k = r->straggler;

	if (!j || r->attempt != j->attempt ||
	    (k->rank != MO_NONE && (k->rank < 0 || (size_t)k->rank >= j->run.n_ranks)))
		return -EINVAL;
	if (k->left) {
		if (j->straggler.rank != k->rank || j->straggler.n_found == 0)
			return -EINVAL;
		j->straggler.found[j->straggler.n_found - 1].left = true;
		return 0;
	}
	straggler_clear(&j->straggler);
	if (k->rank == MO_NONE)
		return 0;
	j->straggler.rank = k->rank;
	j->straggler.sign = k->sign;
	j->straggler.alone = k->alone;
	j->straggler.at = r->time;
	j->straggler.times = k->times;
	j->straggler.lost_pct = k->lost_pct;
	mo_str_set(&j->straggler.text, k->text);
	for (size_t i = 0; i < k->n_evidence; i++)
		mo_strs_add(&j->straggler.evidence, &j->straggler.n_evidence, k->evidence[i]);
	if (!k->alone)
		remember(j, r);
	return 0;
}
