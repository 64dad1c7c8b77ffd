/* See searches.h. */
#include "daemon/core/rules/searches.h"

#include "lib/base/assert.h"
#include "lib/base/util.h"

static bool may_run(const struct search *all, size_t n, const char *user, enum search_kind kind)
{
	size_t n_running = 0, n_viewers = 0;

	for (size_t i = 0; i < n; i++) {
		if (all[i].runs && mo_streq(all[i].user, user))
			return false;
		n_running += all[i].runs;
		n_viewers += all[i].runs && all[i].kind == SEARCH_VIEWER;
	}
	return n_running < SEARCHES_AT_ONCE &&
	       (kind != SEARCH_VIEWER || n_viewers < SEARCHES_OF_VIEWERS);
}

static bool is_before(const struct search *a, const struct search *b)
{
	return a->kind != b->kind ? a->kind < b->kind : a->number < b->number;
}

const struct search *search_next(const struct search *all, size_t n)
{
	const struct search *first = NULL;

	for (size_t i = 0; i < n; i++)
		if (!all[i].runs && may_run(all, n, all[i].user, all[i].kind) &&
		    (!first || is_before(&all[i], first)))
			first = &all[i];
	return first;
}

bool search_admit(const struct search *all, size_t n, const char *user, enum search_kind kind)
{
	size_t n_waiting = 0, n_viewers = 0, n_own = 0;

	mo_assert(all || n == 0);
	for (size_t i = 0; i < n; i++) {
		if (all[i].runs)
			continue;
		n_waiting++;
		n_viewers += all[i].kind == SEARCH_VIEWER;
		n_own += mo_streq(all[i].user, user);
	}
	return may_run(all, n, user, kind) ||
	       (n_waiting < SEARCHES_WAITING && n_own < SEARCHES_WAITING_OF_USER &&
		(kind != SEARCH_VIEWER || n_viewers < SEARCHES_WAITING_OF_VIEWERS));
}
