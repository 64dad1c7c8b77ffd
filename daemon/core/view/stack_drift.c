/* GET /v1/drift: what of the software differs among nodes with GPUs of one model. Nodes whose
 * fingerprints are equal are read once, so the cost grows with how many fingerprints there
 * are. */
#include "daemon/core/view/stack_drift.h"

#include <string.h>

#include "daemon/core/state/health.h"

#define NAMES_MAX 100 /* nodes named of one value */
#define ODD_MAX 100   /* values shown of one key */

static const struct mo_field odd_fields[] = {
	MO_D(drift_odd, value, MO_STR, "what these nodes have; null: nothing"),
	MO_D(drift_odd, count, MO_INT, "how many nodes have it"),
	MO_D_LIST(drift_odd, nodes, MO_STRS, "names of the first hundred of them")
};
const struct mo_desc drift_odd_desc = MO_DESC(drift_odd, odd_fields);
static const struct mo_field key_fields[] = {
	MO_D(drift_key, key, MO_STR, "what differs: a version, a setting"),
	MO_D(drift_key, value, MO_STR, "what most nodes have"),
	MO_D(drift_key, count, MO_INT, "how many nodes have that"),
	MO_D(drift_key, values, MO_INT, "how many different values there are"),
	MO_D_VEC(drift_key, odd, &drift_odd_desc, "values that others have, the first hundred"),
};
const struct mo_desc drift_key_desc = MO_DESC(drift_key, key_fields);
static const struct mo_field group_fields[] = {
	MO_D(drift_group, gpu, MO_STR, "model of the GPUs of these nodes; null: nodes without"),
	MO_D(drift_group, nodes, MO_INT, "how many nodes they are"),
	MO_D(drift_group, same, MO_INT, "how many keys are equal on all of them"),
	MO_D_VEC(drift_group, keys, &drift_key_desc, "keys that are not"),
};
const struct mo_desc drift_group_desc = MO_DESC(drift_group, group_fields);
static const struct mo_field view_fields[] = {
	MO_D_VEC(drift_view, groups, &drift_group_desc, "nodes by the model of their GPUs"),
	MO_D(drift_view, untold, MO_INT, "nodes whose agents reported nothing of their software")
};
const struct mo_desc drift_view_desc = MO_DESC(drift_view, view_fields);

/* A node, or an item of a fingerprint that `count` nodes from first on have. */
struct fingerprint {
	const char *gpu;
	uint64_t stack;
	const struct node *node;
};
struct item {
	const char *value;
	int64_t count;
	size_t first;
};

static int order(const char *a, const char *b)
{
	return !a || !b ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

static int stack_order(const void *a, const void *b)
{
	const struct fingerprint *x = a, *y = b;
	int by_gpu = order(x->gpu, y->gpu);

	if (by_gpu)
		return by_gpu;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int by_value = order(x->value, y->value);

	if (by_value)
		return by_value;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void name_nodes(const struct fingerprint *stacks, const struct item *items, size_t n,
		       struct drift_odd *ret)
{
	ret->value = mo_strdup(items[0].value);
	ret->count = 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < (size_t)items[i].count && ret->n_nodes < NAMES_MAX; k++)
			mo_strs_add(&ret->nodes, &ret->n_nodes,
				    stacks[items[i].first + k].node->name);
		ret->count += items[i].count;
	}
}

static bool all_equal(const struct item *items, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (order(items[i].value, items[0].value) != 0)
			return false;
	return true;
}

static size_t run_end(const struct item *items, size_t n, size_t i)
{
	size_t end = i;

	while (end < n && order(items[end].value, items[i].value) == 0)
		end++;
	return end;
}

/* items: what each fingerprint of the group has under the key; nodes that lack it have a value
 * of their own (NULL). */
static void add_key(const struct fingerprint *stacks, const char *name, struct item *items,
		    size_t n, struct drift_group *ret)
{
	size_t most = 0;
	struct drift_key *key;

	if (all_equal(items, n)) {
		ret->same++;
		return;
	}
	qsort(items, n, sizeof(*items), item_order);
	key = MO_ADD(ret, keys, &drift_key_desc);
	key->key = mo_strdup(name);
	key->count = key->values = 0;
	for (size_t i = 0, end; i < n; i = end) {
		int64_t sum = 0;

		end = run_end(items, n, i);
		for (size_t k = i; k < end; k++)
			sum += items[k].count;
		if (sum > key->count) {
			key->count = sum;
			most = i;
		}
		key->values++;
	}
	key->value = mo_strdup(items[most].value);
	for (size_t i = 0, end; i < n && key->n_odd < ODD_MAX; i = end) {
		end = run_end(items, n, i);
		if (i != most)
			name_nodes(stacks, items + i, end - i, MO_ADD(key, odd, &drift_odd_desc));
	}
}

/* Agents tell their items in one order, so a key is searched where the node before had it. */
static const char *value_of(const struct node_health *h, const char *key, size_t guess)
{
	return guess < h->n_stack && mo_streq(h->stack[guess].key, key)
		       ? h->stack[guess].value
		       : health_stack_value(h, key);
}

static size_t same_stack_end(const struct fingerprint *stacks, size_t i, size_t end)
{
	size_t next = i;

	while (next < end && stacks[next].stack == stacks[i].stack)
		next++;
	return next;
}

/* Every key of the group is asked of every fingerprint, so that a missing one is seen too. */
static void add_group(const struct fingerprint *stacks, size_t first, size_t end,
		      struct drift_view *ret)
{
	_cleanup_(mo_freep) struct item *items = mo_alloc_array(end - first, sizeof(*items));
	struct drift_group *g = MO_ADD(ret, groups, &drift_group_desc);
	const char **keys = NULL;
	size_t n_keys = 0;

	g->gpu = mo_strdup(stacks[first].gpu);
	g->nodes = (int64_t)(end - first);
	g->same = 0;
	for (size_t i = first; i < end; i = same_stack_end(stacks, i, end)) {
		const struct node_health *h = stacks[i].node->health;

		for (size_t k = 0; k < h->n_stack; k++)
			if (!(k < n_keys && mo_streq(keys[k], h->stack[k].key)) &&
			    mo_enum_parse(keys, n_keys, h->stack[k].key) < 0)
				*MO_GROW(keys, n_keys) = h->stack[k].key;
	}
	for (size_t k = 0; k < n_keys; k++) {
		size_t n = 0;

		for (size_t i = first; i < end; i = same_stack_end(stacks, i, end))
			items[n++] = (struct item){
				.value = value_of(stacks[i].node->health, keys[k], k),
				.count = (int64_t)(same_stack_end(stacks, i, end) - i),
				.first = i
			};
		add_key(stacks, keys[k], items, n, g);
	}
	free(keys);
}

void stack_drift_view(const struct state *s, struct drift_view *ret)
{
	_cleanup_(mo_freep) struct fingerprint *stacks =
		mo_alloc_array(s->n_nodes + 1, sizeof(*stacks));
	size_t n = 0, end;

	ret->untold = 0;
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *node = s->nodes[i];

		if (node_stack(node))
			stacks[n++] = (struct fingerprint){
				.gpu = node->info.n_gpus ? node->info.gpus[0].model : NULL,
				.stack = node_stack(node),
				.node = node
			};
		else
			ret->untold++;
	}
	qsort(stacks, n, sizeof(*stacks), stack_order);
	for (size_t i = 0; i < n; i = end) {
		for (end = i; end < n && order(stacks[end].gpu, stacks[i].gpu) == 0; end++)
			continue;
		add_group(stacks, i, end, ret);
	}
}
