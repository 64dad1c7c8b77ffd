/* See env_record.h. Written by stepd when its ranks are forked, read by moed for `moectl explain
 * env`. */
#include "agent/core/bind/env_record.h"

#include "agent/core/bind/env.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

static const struct mo_field env_of_rank_fields[] = {
	MO_D(env_of_rank, rank, MO_INT, "number of the rank"),
	MO_D_VEC(env_of_rank, items, &env_item_desc,
		 "variables that differ from those of the first rank"),
};
static const struct mo_desc env_of_rank_desc = MO_DESC(env_of_rank, env_of_rank_fields);
static const struct mo_field env_record_fields[] = {
	MO_D_VEC(env_record, items, &env_item_desc, "environment of the first rank"),
	MO_D_VEC(env_record, ranks, &env_of_rank_desc, "every rank, and where it differs",
		 .max = MO_GPUS_PER_NODE_MAX),
};
const struct mo_desc env_record_desc = MO_DESC(env_record, env_record_fields);

static const struct env_item *named(const struct env_item *items, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(items[i].name, name))
			return &items[i];
	return NULL;
}

static void add(struct env_item **items, size_t *n, const struct env_item *from)
{
	struct env_item *item = mo_vec_add(&env_item_desc, (void **)items, n);

	mo_desc_copy(&env_item_desc, item, from);
	env_hide(item);
}

/* Compared as they are shown: base is. */
static void add_different(struct env_item **items, size_t *n, const struct env_item *base,
			  const struct env_item *from)
{
	struct env_item *shown = mo_desc_dup(&env_item_desc, from);

	env_hide(shown);
	if (!base || !mo_desc_equal(&env_item_desc, base, shown))
		add(items, n, shown);
	mo_desc_free(&env_item_desc, shown);
}

void env_record_add(struct env_record *rec, int64_t rank, const struct env_item *items, size_t n)
{
	bool first = rec->n_ranks == 0;
	struct env_of_rank *k = MO_ADD(rec, ranks, &env_of_rank_desc);

	mo_assert(items || n == 0);
	k->rank = rank;
	for (size_t i = 0; i < n; i++) {
		const struct env_item *base = named(rec->items, rec->n_items, items[i].name);

		if (first)
			add(&rec->items, &rec->n_items, &items[i]);
		else
			add_different(&k->items, &k->n_items, base, &items[i]);
	}
}

bool env_record_of(const struct env_record *rec, int64_t rank, struct env_item **ret, size_t *n_ret)
{
	const struct env_of_rank *k = NULL;

	for (size_t i = 0; i < rec->n_ranks; i++)
		if (rec->ranks[i].rank == rank)
			k = &rec->ranks[i];
	for (size_t i = 0; k && i < rec->n_items; i++) {
		const struct env_item *own = named(k->items, k->n_items, rec->items[i].name);
		mo_desc_copy(&env_item_desc, mo_vec_add(&env_item_desc, (void **)ret, n_ret),
			     own ? own : &rec->items[i]);
	}
	return k != NULL;
}
