/* See attempt.h. */
#include "daemon/core/update/attempt.h"

#include "daemon/core/update/doubt.h"
#include "daemon/core/update/update_hang.h"
#include "daemon/core/update/update_straggler.h"
#include "daemon/core/update/verify.h"
#include "lib/base/assert.h"

void job_clear_attempt(struct job *j)
{
	mo_vec_clear(&place_desc, (void **)&j->run.places, &j->run.n_places);
	j->failure.decided = false;
	j->failure.waiting_node = false;
	j->failure.exit0_at = MO_NONE;
	hang_clear(&j->hang);
	straggler_clear(&j->straggler);
	j->counts.started = j->counts.dead = j->counts.trouble = j->counts.exited =
		j->counts.silent = j->counts.drained = 0;
	doubt_drop(j);
	verify_end(j);
	mo_assert(j->run.n_places == 0 && j->verify.iteration == MO_NONE && !j->saves.doubt);
}

void step_count(const struct core *c, struct job *j, const struct step *st, int sign)
{
	const struct node *n;
	bool dead = step_dead(st);

	mo_assert(sign == 1 || sign == -1);
	if (st->attempt != j->attempt || j->run.n_places == 0)
		return;
	n = node_find(&c->owned, st->node);
	j->counts.dead += sign * dead;
	j->counts.trouble += sign * (st->refused || st->lost || st->n_bad > 0 ||
				     (dead && st->n_exited < st->n_ranks));
	j->counts.exited += sign * st->n_exited;
	j->counts.silent += sign * (!dead && n && n->state == NODE_DOWN);
	mo_assert(sign < 0 ||
		  (j->counts.dead >= 0 && j->counts.exited >= 0 && j->counts.silent >= 0));
}

/* Its place in the mesh; none where the recipe leaves the sizes to files that nobody read. */
void rank_place(const struct job *j, const struct place *p, struct rank *k)
{
	const struct recipe_parallelism *par = &j->spec.recipe.parallelism;
	int64_t shape;

	mo_assert(p->n_ranks > 0 || p->n_gpus == 0);
	mo_desc_free(&rank_coords_desc, k->coords);
	k->coords = NULL;
	if (p->n_ranks < (int64_t)p->n_gpus)
		return; /* one process has several places in the mesh */
	if (par->tp < 1 || par->cp < 1 || par->ep < 1 || par->dp < 1 || par->pp < 1 ||
	    __builtin_mul_overflow(par->tp * par->cp, par->dp * par->pp, &shape) ||
	    shape != job_gpus(j))
		return;
	k->coords = mo_desc_new(&rank_coords_desc);
	*k->coords = rank_coords_of(k->rank, par->tp, par->cp, par->ep, par->dp, par->pp);
}

void ranks_place(struct job *j)
{
	for (size_t i = 0; i < j->run.n_places; i++)
		for (int64_t r = 0; r < j->run.places[i].n_ranks; r++)
			if ((uint64_t)(j->run.places[i].first_rank + r) < j->run.n_ranks)
				rank_place(j, &j->run.places[i],
					   &j->run.ranks[j->run.places[i].first_rank + r]);
}
