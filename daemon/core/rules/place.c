/* Placement: which GPU slots a job gets. Ranks are contiguous in node-name order. Fewest nodes
 * first, then the fewest slots left over on them, then those that failed least (lemon.h), then,
 * of a job with spares, those that it had and its spares; on a node the lowest free slots.
 * A node takes work when it is up, not drained, reconciled with this controller and holds no step
 * whose end is uncertain (hung, unkillable, fenced but seen again, never stored). Called by
 * schedule.c and as a dry run by the shells. */
#include "daemon/core/rules/place.h"

#include "daemon/core/rules/offers.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/live.h"
#include "daemon/core/state/waiting.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

static bool excluded(const struct recipe *r, const struct node *n)
{
	return (r->n_nodes &&
		mo_enum_parse((const char *const *)r->nodes, r->n_nodes, n->name) < 0) ||
	       mo_enum_parse((const char *const *)r->exclude, r->n_exclude, n->name) >= 0;
}

static bool right_model(const struct recipe *r, const struct node *n, int64_t index)
{
	for (size_t i = 0; i < n->info.n_gpus; i++)
		if (n->info.gpus[i].index == index)
			return !r->gpu || mo_streq(r->gpu, n->info.gpus[i].model);
	return false;
}

/* GPUs of the node that are of the model which is asked for. */
static size_t of_model(const struct recipe *r, const struct node *n)
{
	size_t k = 0;

	if (!r->gpu)
		return n->info.n_gpus;
	for (size_t i = 0; i < n->info.n_gpus; i++)
		k += mo_streq(r->gpu, n->info.gpus[i].model);
	return k;
}

/* Of a node that the recipe does not exclude. */
static bool takes(const struct state *s, const struct slots *slots, const struct recipe *r,
		  size_t node)
{
	const struct node *n = s->nodes[node];

	return slots->nodes[node]->usable && (!slots->one_stack || node_same(n) == slots->stack) &&
	       node_runs_image(n, r) && health_allows(n, r, slots->nodes[node]->well);
}

static bool wanted(const struct state *s, const struct slots *slots, const struct recipe *r,
		   size_t node)
{
	return takes(s, slots, r, node) && !excluded(r, s->nodes[node]);
}

/* It is kept for another job. */
static bool kept(const struct slots *slots, size_t node)
{
	int64_t of = slots->nodes[node]->spare_of;

	return of != MO_NONE && of != slots->job;
}

/* Free ones of a node that does for it. */
static size_t room_now(const struct state *s, const struct slots *slots, const struct recipe *r,
		       size_t node)
{
	const struct node_slots *is = slots->nodes[node];
	size_t n = 0;

	if (!r->gpu)
		return is->n_free;
	for (size_t k = 0; k < is->n_free; k++)
		n += right_model(r, s->nodes[node], is->free[k]);
	return n;
}

size_t place_room_on(const struct state *s, const struct slots *slots, const struct recipe *r,
		     size_t node)
{
	if (slots->nodes[node]->n_free == 0 || kept(slots, node) || !wanted(s, slots, r, node))
		return 0;
	return room_now(s, slots, r, node);
}

/* Slots of the node that would do if nobody used them. */
static size_t room_when_idle(const struct state *s, const struct slots *slots,
			     const struct recipe *r, size_t node)
{
	return wanted(s, slots, r, node) ? of_model(r, s->nodes[node]) : 0;
}

struct group {
	uint64_t stack;
	size_t room;
};

static int group_order(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* Of the nodes with equal software that have the most room together: their stack's hash; 0 =
 * none. */
static uint64_t largest_stack(const struct state *s, const struct slots *slots,
			      const struct recipe *r, bool even_busy)
{
	_cleanup_(mo_freep) struct group *groups = mo_alloc_array(s->n_nodes + 1, sizeof(*groups));
	struct group best = { 0 }, sum = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < s->n_nodes; i++) {
		size_t k =
			even_busy ? room_when_idle(s, slots, r, i) : place_room_on(s, slots, r, i);

		if (k)
			groups[n++] = (struct group){ .stack = node_same(s->nodes[i]), .room = k };
	}
	qsort(groups, n, sizeof(*groups), group_order);
	for (size_t i = 0; i < n; i++) {
		sum = (struct group){
			.stack = groups[i].stack,
			.room = groups[i].room +
				(i && groups[i - 1].stack == groups[i].stack ? sum.room : 0)
		};
		if (sum.room > best.room)
			best = sum;
	}
	return best.stack;
}

/* The same slots, for a job that wants the same software on all its nodes that of one group of
 * them; borrows. */
static struct slots one_group(const struct state *s, const struct slots *slots,
			      const struct recipe *r, bool even_busy)
{
	struct slots one = *slots;

	mo_assert(slots->n == s->n_nodes);
	one.one_stack = health_wants_same_stack(r);
	if (one.one_stack)
		one.stack = largest_stack(s, slots, r, even_busy);
	return one;
}

char *place_stack_note(const struct state *s, const struct slots *slots, const struct recipe *r)
{
	const struct node *example = NULL;
	uint64_t stack;

	if (!health_wants_same_stack(r))
		return NULL;
	stack = largest_stack(s, slots, r, true);
	for (size_t i = 0; i < s->n_nodes && !example; i++)
		example = room_when_idle(s, slots, r, i) && node_same(s->nodes[i]) == stack
				  ? s->nodes[i]
				  : NULL;
	for (size_t i = 0; example && i < s->n_nodes; i++) {
		const struct node *n = s->nodes[i];

		if (!room_when_idle(s, slots, r, i) || node_same(n) == stack)
			continue;
		for (size_t k = 0; k < example->health->n_stack; k++) {
			const struct stack_item *item = &example->health->stack[k];
			const char *value = health_stack_value(n->health, item->key);

			if (!health_own_key(item->key) && !mo_streq(value, item->value))
				return mo_printf("stack.same: the largest group of nodes with the "
						 "same software has %s %s; %s has %s",
						 item->key, item->value, n->name,
						 value ? value : "none");
		}
	}
	return NULL;
}

int64_t place_room(const struct state *s, const struct slots *slots, const struct recipe *r,
		   bool even_busy)
{
	struct slots one = one_group(s, slots, r, even_busy);
	int64_t n = 0;

	for (size_t i = 0; i < s->n_nodes; i++)
		n += (int64_t)(even_busy ? room_when_idle(s, &one, r, i)
					 : place_room_on(s, &one, r, i));
	return n;
}

static int64_t suited_on(const struct recipe *r, const struct node *k)
{
	return excluded(r, k) ? 0 : (int64_t)of_model(r, k);
}

bool place_suits(const struct state *s, const struct recipe *r)
{
	int64_t all = 0;

	for (size_t i = 0; i < s->n_nodes && all < r->gpus; i++)
		all += suited_on(r, s->nodes[i]);
	return all >= r->gpus;
}

int64_t place_suited(const struct state *s, const struct recipe *r, int64_t *ret_largest)
{
	int64_t all = 0;

	*ret_largest = 0;
	for (size_t i = 0; i < s->n_nodes; i++) {
		int64_t n = suited_on(r, s->nodes[i]);

		all += n;
		*ret_largest = MO_MAX(*ret_largest, n);
	}
	mo_assert(*ret_largest <= all);
	return all;
}

/* On nodes that can or cannot run images. */
static int64_t room_without_image(const struct state *s, const struct slots *slots,
				  const struct recipe *r)
{
	struct recipe any = *r; /* borrows */

	any.engine.container = NULL;
	return place_room(s, slots, &any, true);
}

/* What there is for the recipe, in one walk over all nodes: total, usable, free, spares. */
static void count_room(const struct state *s, const struct slots *slots, const struct recipe *r,
		       struct waiting *io)
{
	size_t total = 0, usable = 0, free_now = 0, spares = 0;

	for (size_t i = 0; i < s->n_nodes; i++) {
		size_t n = excluded(r, s->nodes[i]) ? 0 : of_model(r, s->nodes[i]);

		total += n;
		if (n == 0 || !takes(s, slots, r, i))
			continue;
		usable += n;
		if (kept(slots, i))
			spares += n;
		else
			free_now += room_now(s, slots, r, i);
	}
	io->total = (int64_t)total;
	io->usable = (int64_t)usable;
	io->free = (int64_t)free_now;
	io->spares = spares ? (int64_t)spares : MO_NONE;
}

static struct waiting no_room(const struct state *s, const struct slots *slots,
			      const struct recipe *r)
{
	struct waiting w = waiting_make(WAITING_CAPACITY);

	w.needs = r->gpus;
	count_room(s, slots, r, &w);
	if (health_wants_same_stack(r)) { /* of the largest groups */
		w.usable = place_room(s, slots, r, true);
		w.free = place_room(s, slots, r, false);
	}
	w.nodes = (int64_t)s->n_nodes;
	if (w.total < r->gpus)
		w.code = WAITING_TOO_LARGE;
	else if (w.usable < r->gpus && r->engine.container &&
		 room_without_image(s, slots, r) >= r->gpus)
		w.code = WAITING_IMAGES;
	else if (w.usable < r->gpus)
		w.code = health_wants_same_stack(r) ? WAITING_STACK : WAITING_NODES;
	if (w.code == WAITING_TOO_LARGE && r->gpu)
		w.gpu = mo_strdup(r->gpu);
	w.among = r->n_nodes > 0;
	w.excludes = r->n_exclude > 0;
	return w;
}

static void fill(const struct state *s, const struct slots *slots, const struct recipe *r,
		 const struct offer *offers, size_t k, struct place **ret, size_t *n_ret)
{
	int64_t rank = 0;

	for (size_t i = 0; i < k; i++) {
		const struct node *n = s->nodes[offers[i].node];
		const int64_t *free_slots = slots->nodes[offers[i].node]->free;
		struct place *p = mo_vec_add(&place_desc, (void **)ret, n_ret);

		p->node = mo_strdup(n->name);
		p->first_rank = rank;
		for (size_t m = 0; p->n_gpus < offers[i].room; m++)
			if (right_model(r, n, free_slots[m]))
				mo_ints_add(&p->gpus, &p->n_gpus, free_slots[m]);
		p->n_ranks = (int64_t)p->n_gpus;
		rank += p->n_ranks;
	}
	mo_assert(rank == r->gpus);
}

/* Ranks per node in multiples of the tensor-parallel size, so that no tensor group spans nodes
 * when that can be had. */
static size_t try_unit(const struct state *s, const struct slots *slots, const struct recipe *r,
		       size_t unit, struct offer *offers)
{
	size_t n = 0, sum = 0, wanted = (size_t)r->gpus;

	mo_assert(unit > 0 && r->gpus > 0);
	for (size_t i = 0; i < s->n_nodes; i++) {
		size_t free_slots = place_room_on(s, slots, r, i) / unit * unit;

		sum += free_slots;
		if (free_slots)
			offers[n++] =
				(struct offer){ .node = i,
						.room = free_slots,
						.lemon = slots->nodes[i]->lemon,
						.strange = slots->strange ? slots->strange[i] : 0 };
	}
	return sum < wanted ? 0 : offers_choose(offers, n, wanted);
}

static int place_on(const struct state *s, const struct slots *slots, const struct recipe *r,
		    struct place **ret, size_t *n_ret)
{
	_cleanup_(mo_freep) struct offer *offers = mo_alloc_array(s->n_nodes + 1, sizeof(*offers));
	size_t tp = r->parallelism.tp > 1 && r->parallelism.tp <= MO_GPUS_PER_NODE_MAX &&
				    r->gpus % r->parallelism.tp == 0
			    ? (size_t)r->parallelism.tp
			    : 1,
	       k;

	k = try_unit(s, slots, r, tp, offers);
	if (k == 0 && tp > 1)
		k = try_unit(s, slots, r, 1, offers);
	if (k == 0)
		return 1;
	fill(s, slots, r, offers, k, ret, n_ret);
	return 0;
}

void place_processes(const struct engine *e, struct place *places, size_t n)
{
	for (size_t i = 0; e->processes == PROCESS_PER_NODE && i < n; i++) {
		places[i].first_rank = (int64_t)i;
		places[i].n_ranks = 1;
	}
}

int place_in(const struct state *s, const struct slots *slots, const struct recipe *r,
	     struct place **ret, size_t *n_ret, struct waiting *ret_why)
{
	struct slots one = one_group(s, slots, r, false);
	int result = place_on(s, &one, r, ret, n_ret);

	if (result && ret_why)
		*ret_why = no_room(s, slots, r);
	return result;
}

int place_find(const struct state *s, const struct recipe *r, struct place **ret, size_t *n_ret,
	       struct mo_error *err)
{
	_cleanup_(waiting_done) struct waiting w = waiting_make(WAITING_NOT);
	struct slots slots;
	int result;

	slots_init(s, &slots);
	result = place_in(s, &slots, r, ret, n_ret, err ? &w : NULL);
	slots_done(&slots);
	if (!result || !err)
		return result;
	_cleanup_(mo_freep) char *text = waiting_recorded(&w);
	return mo_error_set(err, 1, "%s", text);
}

/* Four ports in a row, going round: a port comes back only after all others were used, and never
 * while its job lives. */
int64_t port_next(const struct core *c)
{
	int64_t first = c->config.port_min, groups = (c->config.port_max - first + 1) / 4,
		at = c->state.next_port;

	mo_assert(groups > 0);
	for (int64_t tries = 0; tries < groups; tries++, at += 4) {
		bool taken = false;

		if (at < first || at + 3 > c->config.port_max)
			at = first;
		for (size_t i = 0; i < c->state.n_holders && !taken; i++) {
			const struct job *j = job_find(&c->state, c->state.holders[i]);

			taken = j->run.port != MO_NONE && j->run.port < at + 4 &&
				at < j->run.port + 4;
		}
		if (!taken)
			return at;
	}
	return at < first || at + 3 > c->config.port_max ? first : at;
}
