/* See index.h. Between turns only: in a turn update.c keeps what is made here. */
#include "daemon/core/update/index.h"

#include "daemon/core/state/health.h"
#include "daemon/core/state/shared_words.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/update/idems.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/slots.h"
#include "lib/base/assert.h"

void core_reindex(struct core *c)
{
	idems_reindex(c);
	c->owned.queue = &c->queue;
	c->owned.node_last = &c->node_last;
	ids_add(&c->owned.holders, &c->owned.n_holders, 0); /* never NULL */
	c->owned.n_holders = c->n_unfinished = c->n_ending = c->n_draining = 0;
	c->n_spares = c->n_leaving = c->n_cordoned = c->n_cordoned_hardware = c->n_retained =
		c->n_texts = 0;
	c->retained_bytes = c->active_bytes = 0;
	for (size_t i = 0; i < c->owned.n_nodes; i++) {
		struct node *k = c->owned.nodes[i];

		c->n_draining += k->drain.asked && !k->drain.done;
		c->n_leaving += k->boot.leaving;
		c->n_spares += k->spare.job != MO_NONE;
		c->n_cordoned += k->drain.asked && k->drain.cordon;
		c->n_cordoned_hardware += k->drain.asked && k->drain.cordon && k->drain.hardware;
		k->stack.hash = health_stack_hash(k->health);
		k->stack.same = health_same_hash(k->health);
		core_live_insert(c, i, i)->heard_at = c->owned.time;
	}
	claims_clear(&c->names);
	claims_clear(&c->dirs);
	for (size_t i = 0; i < c->owned.n_jobs; i++) {
		struct job *j = c->owned.jobs[i];

		while (j->n_ledger < _GPU_CATEGORY_N) /* of a version with fewer */
			mo_ints_add(&j->ledger, &j->n_ledger, 0);
		shared_pool_take(&c->shared, &j->spec);
		words_lend_all(&j->spec);
		retained_count(c, j);
		if (!job_state_final(j->state)) {
			ids_add(&c->unfinished, &c->n_unfinished, j->id);
			claims_add_job(c, j);
		}
		if (j->scan.at_end)
			ids_add(&c->ending, &c->n_ending, j->id);
		if (j->n_steps)
			ids_add(&c->owned.holders, &c->owned.n_holders, j->id);
		for (size_t k = 0; k < j->n_steps; k++) {
			struct live *l = core_live(c, j->steps[k].node);

			if (l && !j->steps[k].forgotten)
				ids_add(&l->jobs, &l->n_jobs, j->id);
		}
		for (size_t k = 0; k < j->checks.n_nodes; k++) {
			struct live *l = core_live(c, j->checks.nodes[k]);

			if (l)
				ids_add(&l->checks, &l->n_checks, j->id);
		}
	}
	slots_reindex(c);
	mo_assert(c->n_unfinished <= c->state.n_jobs);
}
