/* See update_hang.h. The seconds in which nothing moved are hang in the ledger from the verdict on
 * that ends the attempt; one that only reports leaves them as the ledger has them (ledger.c). */
#include "daemon/core/update/update_hang.h"

#include <errno.h>

#include "daemon/core/state/live.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/ledger.h"

void hang_clear(struct job_hang *h)
{
	h->stage = HANG_NONE;
	h->acts = false;
	h->at = h->since = h->rank = MO_NONE;
	mo_str_set(&h->text, NULL);
	mo_str_set(&h->recorder, NULL);
	mo_strs_clear(&h->evidence, &h->n_evidence);
}

int update_hang(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	const struct rec_hang *k = r->hang;
	bool was_confirmed;

	if (!j || r->attempt != j->attempt)
		return -EINVAL;
	was_confirmed = j->hang.stage == HANG_CONFIRMED;
	hang_clear(&j->hang);
	if (k->stage < 0 && was_confirmed)
		j->hang.n_wrong = MO_MAX(j->hang.n_wrong, 0) + 1;
	if (k->stage < 0)
		return 0;
	j->hang.stage = k->stage;
	j->hang.at = r->time;
	j->hang.since = k->since;
	j->hang.rank = k->rank >= 0 && (size_t)k->rank < j->run.n_ranks ? k->rank : MO_NONE;
	j->hang.acts = k->acts;
	mo_str_set(&j->hang.text, k->text);
	mo_str_set(&j->hang.recorder, k->recorder);
	for (size_t i = 0; i < k->n_evidence; i++)
		mo_strs_add(&j->hang.evidence, &j->hang.n_evidence, k->evidence[i]);
	if (k->stage == HANG_CONFIRMED)
		j->hang.n_confirmed = MO_MAX(j->hang.n_confirmed, 0) + 1;
	if (k->acts && k->since != MO_NONE) {
		ledger_charge(j, MO_MIN(k->since, r->time));
		ledger_charge_as(j, r->time, GPU_HANG);
	}
	return 0;
}
