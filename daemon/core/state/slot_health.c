/* See slot_health.h. */
#include "daemon/core/state/slot_health.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"

const struct gpu_slot *node_slot(const struct node *n, int64_t slot)
{
	for (size_t i = 0; i < n->info.n_gpus; i++)
		if (n->info.gpus[i].index == slot)
			return &n->info.gpus[i];
	return NULL;
}

int64_t place_rank(const struct place *p, size_t k)
{
	mo_assert(k < p->n_gpus);
	return p->n_ranks == (int64_t)p->n_gpus ? p->first_rank + (int64_t)k : p->first_rank;
}

static bool says_gone(const struct check_result *r)
{
	bool gone = r->text && strstr(r->text, PROBE_NO_DEVICE);

	for (size_t i = 0; !gone && i < r->n_evidence; i++)
		gone = strstr(r->evidence[i], PROBE_NO_DEVICE) != NULL;
	return gone;
}

static bool only_one_is_gone(const struct node *n, const char *bdf)
{
	for (size_t i = 0; i < n->health->n_results; i++)
		if (!mo_streq(n->health->results[i].object, bdf) &&
		    says_gone(&n->health->results[i]))
			return false;
	return true;
}

/* A finding that is first unreadable and then a warning changes its time; the count of GPUs does
 * not, and it tells the time of the first that went. */
static void count_too(const struct node *n, const char *bdf, struct slot_health *h)
{
	const struct check_result *count = health_find(n->health, "gpu.count", "host");

	if (!count || count->state != CHECK_CRIT)
		return;
	h->count = count;
	if (count->since != MO_NONE &&
	    (h->since == MO_NONE || (count->since < h->since && only_one_is_gone(n, bdf))))
		h->since = count->since;
}

bool slot_health(const struct node *n, int64_t slot, struct slot_health *ret)
{
	const struct gpu_slot *g = n->health && n->health->n_results ? node_slot(n, slot) : NULL;

	*ret = (struct slot_health){ 0 };
	for (size_t i = 0; g && g->bdf && i < n->health->n_results; i++) {
		const struct check_result *r = &n->health->results[i];
		bool gone = false, worse;

		if (r->state == CHECK_OK || finding_skipped(r) || !mo_streq(r->object, g->bdf))
			continue;
		gone = says_gone(r);
		worse = !ret->finding || (gone && !ret->missing) ||
			(gone == ret->missing &&
			 health_rank(r->state) > health_rank(ret->finding->state));
		if (worse)
			ret->finding = r;
		ret->missing |= gone;
	}
	ret->since = ret->finding ? ret->finding->since : MO_NONE;
	if (ret->missing)
		count_too(n, g->bdf, ret);
	return ret->finding;
}

char *slot_health_words(const struct slot_health *h)
{
	const struct check_result *r = h->finding;
	char time[32];
	_cleanup_(mo_freep) char *since =
		h->since == MO_NONE ? mo_strdup("")
				    : mo_printf(" since %.19sZ", mo_time_format(h->since, time));

	if (h->missing)
		return mo_printf("missing%s (%s%s)", since, h->count ? "gpu.count, " : "",
				 r->check);
	return mo_printf("%s %s%s", r->check,
			 mo_enum_name(check_state_names, _CHECK_STATE_N, r->state), since);
}

char *rank_slot_note(const struct state *s, const struct job *j, const struct rank *k)
{
	const struct place *p = k->node && (k->state == RANK_RUNNING || k->state == RANK_WAITING ||
					    k->state == RANK_LOST)
					? place_of(j, k->node)
					: NULL;
	const struct node *n = p ? node_find(s, k->node) : NULL;
	struct slot_health h, worst = { 0 };

	for (size_t i = 0; n && i < p->n_gpus; i++) {
		if (place_rank(p, i) != k->rank || !slot_health(n, p->gpus[i], &h) ||
		    !slot_matters(&h))
			continue;
		if (!worst.finding || (h.missing && !worst.missing))
			worst = h;
	}
	return worst.finding ? slot_health_words(&worst) : NULL;
}

bool slot_matters(const struct slot_health *h)
{
	return h->missing || h->finding->state == CHECK_CRIT ||
	       h->finding->state == CHECK_UNKNOWN || mo_streq(h->finding->check, "gpu.read");
}
