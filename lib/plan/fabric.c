/* See fabric.h. Everything follows from the runs that have answers; nothing else is remembered. */
#include "lib/plan/fabric.h"

#include <stdlib.h>

#include "lib/base/assert.h"
#include "lib/plan/curve.h"

#define SLOW_OF_PEERS 0.8
#define FAST_OF_EXPECTED 0.9

const char *const fabric_verdict_names[] = { "fine", "odd", "together", "untold", "nothing" };
static_assert(ELEMENTSOF(fabric_verdict_names) == _FABRIC_VERDICT_N, "a verdict has no name");

void fabric_init(struct fabric *f, size_t n_nodes, double expected)
{
	assert(n_nodes >= 1 && n_nodes <= FABRIC_NODES_MAX);
	*f = (struct fabric){ .n_nodes = n_nodes, .expected = expected };
}

void fabric_done(struct fabric *f)
{
	for (size_t i = 0; i < f->n_runs; i++)
		free(f->runs[i].failed);
	free(f->runs);
	*f = (struct fabric){ 0 };
}

static void add(struct fabric *f, size_t a, size_t b)
{
	*MO_GROW(f->runs, f->n_runs) = (struct fabric_run){ .a = a, .b = b, .round = f->round };
}

void fabric_answer(struct fabric *f, size_t run, double gbs, const char *failed)
{
	mo_assert(run < f->n_runs && !f->runs[run].measured);
	f->runs[run].measured = true;
	f->runs[run].gbs = failed ? 0 : gbs;
	f->runs[run].failed = mo_strdup(failed);
}

void fabric_answer_text(struct fabric *f, size_t run, const char *text)
{
	_cleanup_(mo_freep) char *wrong = NULL;
	struct curve c;

	if (!curve_parse(text, &c)) {
		fabric_answer(f, run, 0, "it printed no row of rccl-tests");
		return;
	}
	if (c.wrong > 0)
		wrong = mo_printf("%lld values were wrong at %.0f bytes", (long long)c.wrong,
				  c.wrong_bytes);
	fabric_answer(f, run, c.points[c.n - 1].gbs, wrong);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Too few for a middle of disjoint pairs: both of two may be slow. */
static bool is_few(const struct fabric *f)
{
	return f->n_nodes <= 5;
}

/* Of the first pairs, before those that are slow are tried again: the middle one, of two the
 * faster. Of few nodes the fastest of all. */
double fabric_reference(const struct fabric *f)
{
	_cleanup_(mo_freep) double *all = mo_alloc_array(f->n_runs + 1, sizeof(*all));
	size_t n = 0;

	for (size_t i = 1; i < f->n_runs; i++)
		if (f->runs[i].measured && !f->runs[i].failed &&
		    (f->runs[i].round == 1 || is_few(f)))
			all[n++] = f->runs[i].gbs;
	if (n == 0)
		return 0;
	qsort(all, n, sizeof(*all), by_size);
	return all[is_few(f) ? n - 1 : n / 2];
}

static bool slow_by(const struct fabric_run *r, double reference)
{
	return r->measured && (r->failed || r->gbs < SLOW_OF_PEERS * reference);
}

bool fabric_is_slow(const struct fabric *f, const struct fabric_run *r)
{
	return slow_by(r, fabric_reference(f));
}

/* Of one node: pairs in which it is fast, slow, and slow beside one that is fast elsewhere. */
struct tally {
	size_t fast, slow, proved;
};

static void count(const struct fabric *f, struct tally *t)
{
	double reference = fabric_reference(f);

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 1; i < f->n_runs; i++) {
			const struct fabric_run *r = &f->runs[i];
			bool slow = slow_by(r, reference);

			if (!r->measured)
				continue;
			if (pass == 0) {
				t[r->a].fast += !slow;
				t[r->b].fast += !slow;
				t[r->a].slow += slow;
				t[r->b].slow += slow;
			} else if (slow) {
				t[r->a].proved += t[r->b].fast > 0;
				t[r->b].proved += t[r->a].fast > 0;
			}
		}
}

static struct tally *tallies(const struct fabric *f)
{
	struct tally *t = mo_alloc_array(f->n_nodes, sizeof(*t));

	count(f, t);
	return t;
}

static bool odd(const struct tally *t)
{
	return t->fast == 0 && t->proved > 0 && t->slow > 1;
}

bool fabric_is_odd(const struct fabric *f, size_t node)
{
	_cleanup_(mo_freep) struct tally *t = tallies(f);

	return odd(&t[node]);
}

bool fabric_is_untold(const struct fabric *f, size_t node)
{
	_cleanup_(mo_freep) struct tally *t = tallies(f);

	return t[node].fast == 0 && t[node].slow > 0 && !odd(&t[node]);
}

static bool same_pair(const struct fabric_run *r, size_t a, size_t b)
{
	return (r->a == a && r->b == b) || (r->a == b && r->b == a);
}

static size_t met(const struct fabric *f, size_t a, size_t b)
{
	size_t n = 0;

	for (size_t i = 1; i < f->n_runs; i++)
		n += same_pair(&f->runs[i], a, b);
	return n;
}

/* Slow, and its nodes are not: by one measurement or by two. */
static bool maybe_link(const struct fabric *f, const struct fabric_run *r, const struct tally *t)
{
	return r != f->runs && fabric_is_slow(f, r) && t[r->a].fast > 0 && t[r->b].fast > 0;
}

bool fabric_is_link(const struct fabric *f, const struct fabric_run *r)
{
	_cleanup_(mo_freep) struct tally *t = tallies(f);
	bool slow = maybe_link(f, r, t) && met(f, r->a, r->b) > 1;

	for (size_t i = 1; i < f->n_runs && slow; i++)
		slow = !same_pair(&f->runs[i], r->a, r->b) || fabric_is_slow(f, &f->runs[i]);
	return slow;
}

/* Each node of which nothing is known yet gets one that is fast. */
static void pair_suspects(struct fabric *f)
{
	_cleanup_(mo_freep) struct tally *t = tallies(f);
	_cleanup_(mo_freep) bool *busy = mo_alloc_array(f->n_nodes, sizeof(*busy));

	for (size_t i = 0; i < f->n_nodes; i++)
		for (size_t k = 0; k < f->n_nodes && t[i].fast == 0 && !odd(&t[i]) && !busy[i]; k++)
			if (t[k].fast > 0 && !busy[k] && !met(f, i, k)) {
				busy[i] = busy[k] = true;
				add(f, i, k);
			}
}

/* A node is odd by two measurements; a link is measured twice too. */
static void pair_links(struct fabric *f)
{
	_cleanup_(mo_freep) struct tally *t = tallies(f);
	_cleanup_(mo_freep) bool *busy = mo_alloc_array(f->n_nodes, sizeof(*busy));

	for (size_t i = 1, n = f->n_runs; i < n; i++) {
		size_t a = f->runs[i].a, b = f->runs[i].b;

		if (busy[a] || busy[b] || met(f, a, b) > 1 || !maybe_link(f, &f->runs[i], t))
			continue;
		busy[a] = busy[b] = true;
		add(f, a, b);
	}
}

/* One after the other, as each node is in two of them. */
static void pair_of_three(struct fabric *f)
{
	add(f, f->round == 3, f->round == 1 ? 1 : 2);
}

static bool as_expected(const struct fabric *f)
{
	const struct fabric_run *all = f->runs;

	return !all->failed && f->expected > 0 && all->gbs >= FAST_OF_EXPECTED * f->expected;
}

size_t fabric_next(struct fabric *f)
{
	size_t first = f->n_runs;

	for (size_t i = 0; i < f->n_runs; i++)
		mo_assert(f->runs[i].measured);
	if (f->round == 0)
		add(f, 0, 0);
	else if (f->round == FABRIC_ROUNDS_MAX || f->n_nodes < 3 || as_expected(f))
		return first;
	else if (f->n_nodes == 3 && f->round <= 3)
		pair_of_three(f);
	else if (f->round == 1)
		for (size_t i = 0; i + 1 < f->n_nodes; i += 2)
			add(f, i, i + 1);
	else
		pair_suspects(f);
	if (f->n_runs == first)
		pair_links(f);
	f->round += f->n_runs > first;
	return first;
}

int fabric_verdict(const struct fabric *f)
{
	const struct fabric_run *all = f->runs;
	double reference = fabric_reference(f);
	bool none = all->failed && reference <= 0, untold = false;

	for (size_t i = 0; i < f->n_nodes && !none; i++) {
		if (fabric_is_odd(f, i))
			return FABRIC_ODD;
		untold |= fabric_is_untold(f, i);
	}
	for (size_t i = 1; i < f->n_runs && !none; i++)
		if (fabric_is_link(f, &f->runs[i]))
			return FABRIC_ODD;
	if (none)
		return FABRIC_NOTHING;
	if (untold)
		return FABRIC_UNTOLD;
	if (all->failed || all->gbs < FAST_OF_EXPECTED * f->expected)
		return reference > 0 ? FABRIC_TOGETHER : FABRIC_UNTOLD;
	return FABRIC_FINE;
}
