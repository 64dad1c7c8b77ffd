/* What of the software differs: majorities, the odd ones, keys that some lack, models apart, and
 * that many nodes cost little. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/core/view/stack_drift.h"

static struct node *add_node(struct state *s, const char *name, const char *gpu)
{
	struct node *n = MO_INSERT(s, nodes, s->n_nodes, &node_desc);

	n->name = mo_strdup(name);
	if (gpu)
		MO_ADD(&n->info, gpus, &gpu_slot_desc)->model = mo_strdup(gpu);
	n->health = mo_desc_new(&node_health_desc);
	return n;
}

static void add_item(struct node *n, const char *key, const char *value)
{
	struct stack_item *item = MO_ADD(n->health, stack, &stack_item_desc);

	item->key = mo_strdup(key);
	item->value = mo_strdup(value);
}

static void odd_nodes_are_named(void **state)
{
	struct state s;
	struct drift_view v;
	char name[16];

	mo_desc_init(&state_desc, &s);
	mo_desc_init(&drift_view_desc, &v);
	for (int i = 0; i < 5; i++) {
		struct node *n;

		snprintf(name, sizeof(name), "n%d", i);
		n = add_node(&s, name, i == 4 ? "h200" : "mi300x");
		add_item(n, "kernel", i == 2 ? "6.8.0-40" : i == 4 ? "5.15" : "6.8.0-45");
		add_item(n, "rocm", "7.0");
		if (i != 1)
			add_item(n, "bios", "1.2");
	}
	add_node(&s, "n5", "mi300x"); /* reported nothing */
	stack_drift_view(&s, &v);
	assert_int_equal(v.untold, 1);
	assert_int_equal(v.n_groups, 2);
	assert_string_equal(v.groups[0].gpu, "h200");
	assert_int_equal(v.groups[0].n_keys, 0);
	assert_int_equal(v.groups[0].same, 3);
	assert_string_equal(v.groups[1].gpu, "mi300x");
	assert_int_equal(v.groups[1].nodes, 4);
	assert_int_equal(v.groups[1].same, 1);
	assert_int_equal(v.groups[1].n_keys, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct drift_key *k = &v.groups[1].keys[i];
		bool bios = mo_streq(k->key, "bios");

		assert_string_equal(k->key, bios ? "bios" : "kernel");
		assert_string_equal(k->value, bios ? "1.2" : "6.8.0-45");
		assert_int_equal(k->count, 3);
		assert_int_equal(k->n_odd, 1);
		assert_int_equal(k->odd[0].count, 1);
		assert_string_equal(k->odd[0].nodes[0], bios ? "n1" : "n2");
		if (bios)
			assert_null(k->odd[0].value);
		else
			assert_string_equal(k->odd[0].value, "6.8.0-40");
	}
	mo_desc_done(&drift_view_desc, &v);
	mo_desc_done(&state_desc, &s);
}

/* 12,500 nodes with 40 items; distinct: every node has a fingerprint of its own. */
static double seconds_of(bool distinct)
{
	struct state s;
	struct drift_view v;
	struct timespec a, b;
	char name[32];

	mo_desc_init(&state_desc, &s);
	mo_desc_init(&drift_view_desc, &v);
	for (int i = 0; i < 12500; i++) {
		struct node *n;

		snprintf(name, sizeof(name), "n%05d", i);
		n = add_node(&s, name, "mi300x");
		for (int k = 0; k < 40; k++) {
			char key[16];

			snprintf(key, sizeof(key), "key%d", k);
			snprintf(name, sizeof(name), "value %d",
				 k == 7 && (distinct || i % 1000 == 999) ? i : 1);
			add_item(n, key, name);
		}
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	stack_drift_view(&s, &v);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	assert_int_equal(v.groups[0].n_keys, 1);
	assert_int_equal(v.groups[0].keys[0].values, distinct ? 12500 : 13);
	assert_int_equal(v.groups[0].keys[0].n_odd, distinct ? 100 : 12);
	mo_desc_done(&drift_view_desc, &v);
	mo_desc_done(&state_desc, &s);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

static void many_nodes(void **state)
{
	double few = seconds_of(false), all = seconds_of(true);

	print_message("12,500 nodes: %.1f ms of CPU time with few fingerprints, %.1f ms when all "
		      "differ\n",
		      few * 1e3, all * 1e3);
	/* about 6 times; a comparison of each with each would be a thousand */
	assert_true(all < 100 * few);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(odd_nodes_are_named),
					    cmocka_unit_test(many_nodes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
