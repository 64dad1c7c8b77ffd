/* See offers.h. */
#include "daemon/core/rules/offers.h"

#include <stdlib.h>

#include "lib/base/assert.h"

static int offer_order(const void *a, const void *b)
{
	const struct offer *x = a, *y = b;

	if (x->room != y->room)
		return x->room < y->room ? 1 : -1;
	if (x->lemon != y->lemon)
		return x->lemon < y->lemon ? -1 : 1;
	if (x->strange != y->strange)
		return x->strange - y->strange;
	return x->node < y->node ? -1 : 1;
}

static int node_order(const void *a, const void *b)
{
	const struct offer *x = a, *y = b;

	return x->node < y->node ? -1 : 1;
}

/* offers: by room, descending. Keeps the chosen ones in front with room = what is taken; returns
 * how many, 0 = they do not do. */
static size_t choose_sorted(struct offer *offers, size_t n, size_t wanted)
{
	size_t k = 0, sum = 0, last;

	while (k < n && sum < wanted)
		sum += offers[k++].room;
	if (sum < wanted)
		return 0;
	mo_assert(k > 0 && sum - offers[k - 1].room < wanted);
	wanted -= sum - offers[k - 1].room; /* what the last node gives */
	for (last = k - 1; last + 1 < n && offers[last + 1].room >= wanted; last++)
		continue; /* the tightest fit, among equals who failed least, then by name */
	while (last > k - 1 && offers[last - 1].room == offers[last].room)
		last--;
	offers[k - 1] = (struct offer){ .node = offers[last].node, .room = wanted };
	mo_assert(offers[k - 1].room > 0);
	return k;
}

/* The same of those on which all of it fits, in whatever order: most jobs are small, and the
 * cluster large. */
static size_t choose_one(struct offer *offers, size_t n, size_t wanted)
{
	const struct offer *best = NULL;

	for (const struct offer *o = offers; o < offers + n; o++) {
		if (o->room < wanted)
			continue;
		if (!best || o->room < best->room ||
		    (o->room == best->room && offer_order(o, best) < 0))
			best = o;
	}
	if (best)
		offers[0] = (struct offer){ .node = best->node, .room = wanted };
	return best != NULL;
}

size_t offers_choose(struct offer *offers, size_t n, size_t wanted)
{
	size_t k;

	mo_assert(wanted > 0);
	if (choose_one(offers, n, wanted))
		return 1;
	qsort(offers, n, sizeof(*offers), offer_order);
	k = choose_sorted(offers, n, wanted);
	qsort(offers, k, sizeof(*offers), node_order);
	return k;
}
