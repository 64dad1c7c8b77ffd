/* See bind_cores.h. How a NUMA node is divided: shares of equal size in slot order, each a run
 * of cores in L3 order. A border between two shares moves to the nearest border of an L3 group
 * when that is near (a quarter of a share) and leaves the shares fair: none less than two thirds
 * of another, none more than an L3 group larger. The reserved cores are taken after that: the
 * lowest one, where the kernel's own work is, then the first of whichever share is largest, so
 * that aligned shares stay aligned and equal ones differ by one. */
#include "agent/core/bind/bind_cores.h"

#include <errno.h>
#include <string.h>

#include "lib/base/assert.h"

#define L3_PER_NODE_MAX 65536

void pool_done(struct core_pool *p)
{
	for (size_t i = 0; i < p->n; i++)
		mo_idset_done(&p->cores[i].cpus);
	free(p->cores);
	*p = (struct core_pool){ 0 };
}

/* Calls fn for each ";"-separated cpu list. */
static int each_group(const char *text, int (*fn)(void *arg, const struct mo_idset *group),
		      void *arg)
{
	for (const char *p = text; p && *p;) {
		_cleanup_(mo_freep) char *part = mo_part(&p, ";");
		_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
		int r = mo_idset_parse(part, &set);

		if (r == 0 && mo_idset_count(&set) > 0)
			r = fn(arg, &set);
		if (r < 0)
			return r;
	}
	return 0;
}

struct l3_search {
	struct core_pool *pool;
	size_t from, base;
};

/* The group's number is that of its lowest cpu, so that groups stand in the order of their cpus
 * however they are listed. */
static int mark_l3(void *arg, const struct mo_idset *group)
{
	struct l3_search *s = arg;
	size_t cores = 0;

	for (size_t i = s->from; i < s->pool->n; i++)
		if (mo_idset_has(group, (size_t)s->pool->cores[i].first)) {
			s->pool->cores[i].l3 = s->base + (size_t)mo_idset_next(group, 0);
			cores++;
		}
	s->pool->l3_max = MO_MAX(s->pool->l3_max, cores);
	return 0;
}

static int add_core(void *arg, const struct mo_idset *group)
{
	struct core_pool *pool = arg;
	struct core *c = MO_GROW(pool->cores, pool->n);

	mo_idset_copy(&c->cpus, group);
	c->first = mo_idset_next(group, 0);
	return 0;
}

static int by_l3(const void *a, const void *b)
{
	const struct core *x = a, *y = b;

	return x->l3 != y->l3 ? (x->l3 > y->l3) - (x->l3 < y->l3)
			      : (x->first > y->first) - (x->first < y->first);
}

static int add_node(const struct numa_node *node, size_t l3_base, struct core_pool *pool)
{
	size_t from = pool->n;
	int r = 0;

	if (node->cores && *node->cores) {
		r = each_group(node->cores, add_core, pool);
	} else if (node->cpus) {
		_cleanup_(mo_idset_done) struct mo_idset all = { 0 };
		r = mo_idset_parse(node->cpus, &all);
		for (int64_t cpu = mo_idset_next(&all, 0); r == 0 && cpu >= 0;
		     cpu = mo_idset_next(&all, cpu + 1)) {
			_cleanup_(mo_idset_done) struct mo_idset one = { 0 };
			mo_idset_add(&one, (size_t)cpu);
			add_core(pool, &one);
		}
	}
	if (r < 0)
		return r;
	for (size_t i = from; i < pool->n; i++)
		pool->cores[i].l3 = l3_base;
	struct l3_search search = { .pool = pool, .from = from, .base = l3_base };
	return each_group(node->l3, mark_l3, &search);
}

int pool_fill(const struct nodeinfo *info, int64_t numa, struct core_pool *pool)
{
	int r = 0;

	for (size_t i = 0; i < info->n_numa && r == 0; i++)
		if (numa == MO_NONE || info->numa[i].id == numa)
			r = add_node(&info->numa[i], i * L3_PER_NODE_MAX, pool);
	if (pool->n)
		qsort(pool->cores, pool->n, sizeof(*pool->cores), by_l3);
	return r;
}

/* The border of L3 groups nearest to position `at`; 0 and n are borders too. */
static size_t nearest_border(const struct core_pool *p, size_t at)
{
	size_t below = at, above = at;

	mo_assert(at <= p->n);
	while (below > 0 && below < p->n && p->cores[below].l3 == p->cores[below - 1].l3)
		below--;
	while (above < p->n && above > 0 && p->cores[above].l3 == p->cores[above - 1].l3)
		above++;
	return above - at < at - below ? above : below;
}

/* Writes the share of each core; counts gets the size of each share. */
static void cut(struct core_pool *p, size_t n, bool aligned, size_t *counts)
{
	size_t from = 0;

	memset(counts, 0, n * sizeof(*counts));
	for (size_t s = 0; s < n; s++) {
		size_t to = ((s + 1) * p->n + n - 1) / n,
		       border = aligned ? nearest_border(p, to) : to;
		if (border > from && 4 * n * (border > to ? border - to : to - border) <= p->n)
			to = border;
		for (size_t i = from; i < to; i++)
			p->cores[i].share = s;
		counts[s] = to - from;
		from = to;
	}
	mo_assert(from == p->n); /* every core is somebody's */
}

static size_t largest(const size_t *counts, size_t n)
{
	size_t best = 0;

	mo_assert(n > 0);
	for (size_t s = 1; s < n; s++)
		if (counts[s] > counts[best])
			best = s;
	return best;
}

static void reserve_cores(struct core_pool *p, size_t n, size_t reserve, size_t *counts)
{
	for (size_t k = 0; k < reserve; k++) {
		size_t share = k == 0 && counts[0] > 1 ? 0 : largest(counts, n), i = 0;
		if (counts[share] <= 1)
			return;
		while (p->cores[i].share != share || p->cores[i].reserved)
			i++;
		p->cores[i].reserved = true;
		counts[share]--;
	}
}

static bool fair(const struct core_pool *p, const size_t *counts, size_t n)
{
	size_t most = counts[largest(counts, n)], least = most;

	for (size_t s = 0; s < n; s++)
		least = MO_MIN(least, counts[s]);
	return most - least <= 1 || (most - least <= p->l3_max && 3 * least >= 2 * most);
}

void pool_divide(struct core_pool *p, size_t n, size_t reserve, size_t keep)
{
	_cleanup_(mo_freep) size_t *counts = mo_alloc_array(n + 1, sizeof(*counts));

	mo_assert(p->cores || p->n == 0);
	p->n_shares = n;
	p->divided = n > 0 && p->n >= n;
	for (int aligned = 1; p->divided && aligned >= 0; aligned--) {
		for (size_t i = 0; i < p->n; i++)
			p->cores[i].reserved = false;
		cut(p, n, aligned, counts);
		reserve_cores(p, n, reserve, counts);
		if (fair(p, counts, n))
			return;
	}
	for (size_t k = 0; !p->divided && k < reserve && p->n > keep && k < p->n - keep; k++)
		p->cores[k].reserved = true;
}

void core_give(const struct core_pool *pool, size_t i, bool one_thread, struct mo_idset *ret)
{
	mo_assert(i < pool->n);
	if (one_thread)
		mo_idset_add(ret, (size_t)pool->cores[i].first);
	else
		mo_idset_or(ret, &pool->cores[i].cpus);
}

bool core_is_free(const struct core_pool *pool, size_t i, const struct mo_idset *taken)
{
	const struct mo_idset *cpus = &pool->cores[i].cpus;

	mo_assert(i < pool->n);
	for (int64_t cpu = mo_idset_next(cpus, 0); cpu >= 0; cpu = mo_idset_next(cpus, cpu + 1))
		if (mo_idset_has(taken, (size_t)cpu))
			return false;
	return true;
}
