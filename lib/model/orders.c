/* See orders.h. */
#include "lib/model/orders.h"

#include <assert.h>

/* The numbers of each kind lie below its bound, down to the next one's; ids are below ID_END. */
#define VERIFY_BELOW (-(1LL << 56))
#define LAST_SCAN_BELOW (-(1LL << 55))
#define PRUNE_BELOW 0
#define ID_END (1LL << 55)

static int64_t number_of(int order, int64_t id)
{
	assert(order >= 0 && order < _ORDER_N && id >= 0 && id < ID_END);
	switch (order) {
	case ORDER_VERIFY: return VERIFY_BELOW - 1 - id;
	case ORDER_LAST_SCAN: return LAST_SCAN_BELOW - 1 - id;
	case ORDER_PRUNE: return PRUNE_BELOW - 1 - id;
	default: return id;
	}
}

static void by_number(int64_t number, int *ret_order, int64_t *ret_id)
{
	int64_t below = number < VERIFY_BELOW      ? VERIFY_BELOW
			: number < LAST_SCAN_BELOW ? LAST_SCAN_BELOW
						   : PRUNE_BELOW;

	*ret_order = number >= PRUNE_BELOW      ? ORDER_SCAN
		     : below == VERIFY_BELOW    ? ORDER_VERIFY
		     : below == LAST_SCAN_BELOW ? ORDER_LAST_SCAN
						: ORDER_PRUNE;
	*ret_id = number >= PRUNE_BELOW ? number : below - 1 - number;
}

/* Inside, an attempt is an attempt: that which a scan is made for, or unknown. What names no order
 * that anybody can have given has none. */
static void settle(int64_t *attempt, int *order, int64_t *id)
{
	if (*order < 0 || *order >= _ORDER_N || *id == MO_NONE)
		by_number(*attempt, order, id);
	if (*id < 0 || *id >= ID_END) {
		*order = -1;
		*id = MO_NONE;
	}
	*attempt = *order == ORDER_SCAN || *order == ORDER_LAST_SCAN ? *id : MO_NONE;
}

void orders_to_wire(struct sync_reply *reply)
{
	for (size_t i = 0; i < reply->n_commands; i++) {
		struct command *c = &reply->commands[i];

		if (c->kind == CMD_SCAN)
			c->attempt = number_of(c->order, c->id);
	}
}

void orders_from_wire(struct sync_reply *reply)
{
	for (size_t i = 0; i < reply->n_commands; i++) {
		struct command *c = &reply->commands[i];

		if (c->kind == CMD_SCAN)
			settle(&c->attempt, &c->order, &c->id);
	}
}

void answers_to_wire(struct agent_sync *sync, bool named, bool space)
{
	for (size_t i = 0; i < sync->n_scans; i++) {
		struct scan_result *s = &sync->scans[i];

		s->attempt = number_of(s->order, s->id);
		if (!named) {
			s->order = -1;
			s->id = MO_NONE;
		}
		if (!space)
			s->free_bytes = MO_NONE;
	}
}

void answer_from_wire(struct scan_result *scan)
{
	settle(&scan->attempt, &scan->order, &scan->id);
}

void answers_from_wire(struct agent_sync *sync)
{
	for (size_t i = 0; i < sync->n_scans; i++)
		answer_from_wire(&sync->scans[i]);
}
