/* Who may hold how much of the ring of events. When it is full, an eighth goes at once, so that a
 * full ring does not shift for each event. Half of the rest is for what is of no job (nodes,
 * operators, the controller itself), half for jobs, of which each user may hold as much as each
 * other; what one does not need is the others'. So whoever makes many events pushes out his own. Of
 * each the oldest go, and the job and the node of each that goes count it: what is shown of them
 * can say so. A replay does the same. */
#include "daemon/core/update/ring.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/live.h"
#include "daemon/core/update/edit.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

/* An event of a job, by its user. */
struct owned {
	const char *user;
	size_t at;
};

static int by_user_and_age(const void *a, const void *b)
{
	const struct owned *x = a, *y = b;
	int r = strcmp(x->user, y->user);

	return r ? r : (x->at > y->at) - (x->at < y->at);
}

static int by_size(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The most that each may hold so that all together hold `room`; who has less holds all that he has.
 * Sorts the sizes. */
static size_t fair_part(size_t *sizes, size_t n, size_t room)
{
	mo_assert(sizes || n == 0);
	qsort(sizes, n, sizeof(*sizes), by_size);
	for (size_t i = 0; i < n; i++) {
		if (sizes[i] > room / (n - i))
			return room / (n - i);
		room -= sizes[i];
	}
	return SIZE_MAX;
}

static size_t run_of(const struct owned *all, size_t n)
{
	size_t length = 1;

	mo_assert(n > 0);
	while (length < n && strcmp(all[length].user, all->user) == 0)
		length++;
	mo_assert(length <= n);
	return length;
}

/* Marks what goes of the jobs' events, so that `room` are left. */
static void thin_users(struct owned *all, size_t n, size_t room, bool *goes)
{
	_cleanup_(mo_freep) size_t *sizes = mo_alloc_array(n + 1, sizeof(*sizes));
	size_t n_users = 0, length;

	qsort(all, n, sizeof(*all), by_user_and_age);
	for (size_t i = 0; i < n; i += length)
		sizes[n_users++] = length = run_of(&all[i], n - i);
	size_t part = fair_part(sizes, n_users, room);
	for (size_t i = 0; i < n; i += length) {
		length = run_of(&all[i], n - i);
		for (size_t k = 0; k < length - MO_MIN(length, part); k++)
			goes[all[i + k].at] = true;
	}
}

/* Marks what goes of those that are of no job, so that `room` are left of n. */
static void thin_others(const struct state *s, size_t n, size_t room, bool *goes)
{
	for (size_t i = 0; i < s->n_events && n > room; i++)
		if (s->events[i].job == MO_NONE) {
			goes[i] = true;
			n--;
		}
}

static void count_gone(int64_t *n)
{
	*n = MO_MAX(*n, 0) + 1;
}

static void let_go(struct state *s, struct event *e)
{
	struct job *j = e->job == MO_NONE ? NULL : job_edit(s, e->job);
	struct node *n = e->node ? node_edit(s, e->node) : NULL;

	if (j)
		count_gone(&j->events_gone);
	if (n)
		count_gone(&n->events_gone);
	mo_desc_done(&event_desc, e);
}

static void thin(struct state *s, size_t room)
{
	_cleanup_(mo_freep) struct owned *owned = mo_alloc_array(s->n_events + 1, sizeof(*owned));
	_cleanup_(mo_freep) bool *goes = mo_alloc_array(s->n_events + 1, sizeof(*goes));
	size_t n_owned = 0, retained = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		const int64_t id = s->events[i].job;
		const struct job *j = id == MO_NONE ? NULL : job_find(s, id);

		if (id != MO_NONE)
			owned[n_owned++] =
				(struct owned){ j && j->spec.user ? j->spec.user : "", i };
	}
	const size_t n_others = s->n_events - n_owned;
	size_t sides[] = { n_owned, n_others };
	const size_t side = fair_part(sides, ELEMENTSOF(sides), room);

	thin_others(s, n_others, MO_MIN(n_others, side), goes);
	thin_users(owned, n_owned, MO_MIN(n_owned, side), goes);
	for (size_t i = 0; i < s->n_events; i++) {
		if (goes[i])
			let_go(s, &s->events[i]);
		else
			s->events[retained++] = s->events[i];
	}
	s->n_events = retained;
	mo_assert(retained <= room);
}

void ring_forget(struct state *s, const int64_t *seqs, size_t n)
{
	size_t retained = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		if (ids_has(seqs, n, s->events[i].seq))
			let_go(s, &s->events[i]);
		else
			s->events[retained++] = s->events[i];
	}
	s->n_events = retained;
}

void ring_make_room(struct state *s)
{
	if (s->n_events >= MO_EVENTS_MAX)
		thin(s, MO_EVENTS_MAX - MO_EVENTS_MAX / 8);
	assert(s->n_events < MO_EVENTS_MAX);
}

size_t ring_find(const struct state *s, int64_t seq)
{
	size_t low = 0, high = s->n_events;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->events[mid].seq < seq)
			low = mid + 1;
		else
			high = mid;
	}
	mo_assert(low == 0 || s->events[low - 1].seq < seq);
	return low;
}

int64_t ring_gone(const struct state *s, int64_t after)
{
	const int64_t held = (int64_t)(s->n_events - ring_find(s, after + 1));

	return MO_MAX(s->next_event_seq - 1 - after - held, 0);
}
