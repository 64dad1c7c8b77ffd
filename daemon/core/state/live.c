/* See live.h: ordered lists of ids, and the part of a node that is never stored. */
#include "daemon/core/state/live.h"

#include <stdlib.h>
#include <string.h>

/* First position whose id is not below. */
static size_t ids_place(const int64_t *ids, size_t n, int64_t id)
{
	size_t low = 0, high = n;

	if (n == 0 || ids[n - 1] < id)
		return n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool ids_has(const int64_t *ids, size_t n, int64_t id)
{
	size_t at = ids_place(ids, n, id);

	return at < n && ids[at] == id;
}

void ids_add(int64_t **ids, size_t *n, int64_t id)
{
	size_t at = ids_place(*ids, *n, id);

	if (at < *n && (*ids)[at] == id)
		return;
	mo_ints_add(ids, n, id);
	memmove(*ids + at + 1, *ids + at, (*n - 1 - at) * sizeof(**ids));
	(*ids)[at] = id;
}

void ids_remove(int64_t *ids, size_t *n, int64_t id)
{
	size_t at = ids_place(ids, *n, id);

	if (at >= *n || ids[at] != id)
		return;
	memmove(ids + at, ids + at + 1, (*n - at - 1) * sizeof(*ids));
	(*n)--;
}

void core_touch(struct core *c, int64_t job)
{
	ids_add(&c->dirty, &c->n_dirty, job);
}

bool job_is_out(const struct state *s, int64_t job)
{
	return ids_has(s->aside, s->n_aside, job);
}

struct live *core_live(const struct core *c, const char *node)
{
	const struct node *n = node_find(&c->state, node);

	return n ? &c->lives[n - c->state.nodes] : NULL;
}

static void live_done(struct live *l)
{
	free(l->jobs);
	free(l->strays);
	free(l->tellers);
	free(l->scans);
	free(l->checks);
	mo_vec_clear(&gpu_sensors_desc, (void **)&l->sensors, &l->n_sensors);
	mo_vec_clear(&nic_sensors_desc, (void **)&l->nics, &l->n_nics);
	mo_desc_free(&agent_hello_desc, l->candidate);
}

void core_lives_clear(struct core *c)
{
	for (size_t i = 0; i < c->state.n_nodes; i++)
		live_done(&c->lives[i]);
	free(c->lives);
	c->lives = NULL;
}
