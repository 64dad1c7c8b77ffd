/* An attempt begins on its nodes: see update_place.h. */
#include "daemon/core/update/update_place.h"

#include <errno.h>

#include "daemon/core/state/interval.h"
#include "daemon/core/state/live.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/ledger.h"
#include "daemon/core/update/slots.h"
#include "daemon/core/update/update_node.h"
#include "daemon/core/update/update_spare.h"
#include "daemon/core/update/verify.h"
#include "daemon/core/update/waterfall.h"

static void rank_init(const struct job *j, const struct node *n, struct rank *k,
		      const struct place *p, int64_t local)
{
	k->rank = p->first_rank + local;
	k->node = mo_strdup(p->node);
	k->local_rank = local;
	k->state = RANK_WAITING;
	k->gpu = p->gpus[local];
	for (size_t i = 0; n && i < n->info.n_gpus; i++)
		if (n->info.gpus[i].index == k->gpu)
			k->nic = mo_strdup(n->info.gpus[i].nic);
	rank_place(j, p, k);
}

static void step_init(struct core *c, struct job *j, const struct place *p, const char *boot_id)
{
	struct step *st = MO_ADD(j, steps, &step_desc);
	struct live *l = core_live(c, p->node);

	st->node = mo_strdup(p->node);
	st->boot_id = mo_strdup(boot_id);
	st->attempt = j->attempt;
	st->through = st->n_exited = st->n_bad = 0;
	st->first_rank = p->first_rank;
	st->n_ranks = p->n_ranks;
	if (l)
		ids_add(&l->jobs, &l->n_jobs, j->id);
}

/* By what the attempts before have measured; an engine cannot change it while it runs. */
static void every_set(const struct state *s, struct job *j)
{
	struct interval i;

	mo_desc_init(&interval_desc, &i);
	if (interval_of(s, j, &i))
		j->saves.every = i.next;
	mo_desc_done(&interval_desc, &i);
}

int update_place(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;
	struct job *j = record_job(&c->owned, r);
	const struct rec_place *k = r->place;

	if (!j || r->attempt <= j->attempt || k->n_places == 0 || k->n_boot_ids != k->n_places)
		return -EINVAL;
	ledger_charge(j, r->time);
	waterfall_image(j, false, r->time);
	slots_touch_places(c, j);
	job_clear_attempt(j);
	checks_over(c, j);
	ids_add(&c->owned.holders, &c->owned.n_holders, j->id);
	j->attempt = r->attempt;
	j->run.port = k->port;
	mo_vec_clear(&prepared_desc, (void **)&j->run.prepared, &j->run.n_prepared);
	j->config.due = false;
	mo_str_set(&j->config.refused, NULL);
	s->next_port = k->port + 4;
	j->restarts += k->is_restart;
	every_set(s, j);
	j->run.resume = k->resume;
	if (j->started_at == MO_NONE)
		j->started_at = r->time;
	if (j->n_incidents && j->after_failure) {
		struct incident *inc = &j->incidents[j->n_incidents - 1];

		if (j->waterfall.lost_mark != MO_NONE)
			inc->lost_iterations =
				MO_MAX(0, j->waterfall.lost_mark - MO_MAX(0, k->resume));
		free(inc->action);
		inc->action = k->resume >= 0
				      ? mo_printf("restart from checkpoint %lld as attempt %lld",
						  (long long)k->resume, (long long)r->attempt)
				      : mo_printf("restart from the beginning as attempt %lld",
						  (long long)r->attempt);
	}
	if (k->resume < 0)
		checkpoint_pass_over(j);
	if (j->restart_from != MO_NONE)
		checkpoint_supersede(j, k->resume, r->attempt, r->time);
	j->progress.longest_start_us = MO_MAX(j->progress.longest_start_us, j->run.start_us);
	j->progress.iteration = j->restart_from = j->run.start_us = MO_NONE;
	j->after_failure = j->unheard = false;
	j->intent = INTENT_NONE;
	j->progress.phase = PHASE_NONE;
	j->progress.phase_of = j->progress.phase_said = MO_NONE;
	j->progress.at = j->run.placed_at = r->time;
	mo_vec_clear(&rank_desc, (void **)&j->run.ranks, &j->run.n_ranks);
	for (size_t i = 0; i < k->n_places; i++) {
		struct node *n = node_edit(s, k->places[i].node);

		if (n && n->spare.job == j->id)
			spare_end(c, n, r->time);
		mo_desc_copy(&place_desc, MO_ADD(&j->run, places, &place_desc), &k->places[i]);
		step_init(c, j, &k->places[i], k->boot_ids[i]);
		for (int64_t n_rank = 0; n_rank < k->places[i].n_ranks; n_rank++)
			rank_init(j, n, MO_ADD(&j->run, ranks, &rank_desc), &k->places[i], n_rank);
	}
	waterfall_changed(j, r->time);
	verify_begin(j);
	c->queue_dirty = true;
	return 0;
}
