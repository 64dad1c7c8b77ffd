/* Placement, queue order, ports. */
#include "tests/unit/dcore/world.h"

#include <string.h>

static void expect(const struct state *s, struct recipe *r, const char *text)
{
	struct place *places = NULL;
	size_t n = 0;
	struct mo_error err = { 0 };
	struct mo_buf b = { 0 };
	int64_t rank = 0;

	if (place_find(s, r, &places, &n, &err) != 0)
		mo_buf_str(&b, err.text);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(places[i].first_rank, rank);
		assert_int_equal(places[i].n_ranks, places[i].n_gpus);
		rank += places[i].n_ranks;
		mo_buf_printf(&b, "%s%s:%lld", i ? " " : "", places[i].node,
			      (long long)places[i].n_ranks);
	}
	assert_string_equal(b.data, text);
	mo_buf_done(&b);
	mo_error_done(&err);
	mo_vec_clear(&place_desc, (void **)&places, &n);
}

static struct node *add(struct state *s, const char *name, int64_t gpus, const char *model)
{
	struct node *n = MO_INSERT(s, nodes, s->n_nodes, &node_desc);

	n->name = mo_strdup(name);
	n->boot.id = mo_strdup("b");
	n->state = NODE_UP;
	n->agent.reconciled = true;
	for (int64_t i = 0; i < gpus; i++) {
		struct gpu_slot *g = MO_ADD(&n->info, gpus, &gpu_slot_desc);

		g->index = i;
		g->model = mo_strdup(model);
	}
	return n;
}

static void shapes(void **state)
{
	struct submit spec;
	struct state s;
	struct recipe *r = &spec.recipe;

	world_recipe(&spec, 1);
	mo_desc_init(&state_desc, &s);
	expect(&s, r, "needs 1 GPUs; the cluster has 0");
	add(&s, "a", 4, "mi300x");
	add(&s, "b", 8, "mi300x");
	add(&s, "c", 2, "mi355x");
	add(&s, "d", 8, "mi300x");
	expect(&s, r, "c:1"); /* the tightest fit */
	r->gpus = 3;
	expect(&s, r, "a:3");
	r->gpus = 8;
	expect(&s, r, "b:8"); /* one whole node before two halves */
	r->gpus = 10;
	expect(&s, r, "b:8 c:2"); /* fewest nodes, then fewest left over; names in order */
	r->gpus = 12;
	expect(&s, r, "a:4 b:8");
	r->gpus = 22;
	expect(&s, r, "a:4 b:8 c:2 d:8");
	r->gpus = 23;
	expect(&s, r, "needs 23 GPUs; the cluster has 22");
	r->gpu = mo_strdup("mi355x");
	r->gpus = 2;
	expect(&s, r, "c:2");
	r->gpus = 3;
	expect(&s, r, "needs 3 GPUs of type mi355x; the cluster has 2");
	mo_str_set(&r->gpu, NULL);
	mo_strs_add(&r->nodes, &r->n_nodes, "c");
	mo_strs_add(&r->nodes, &r->n_nodes, "d");
	r->gpus = 10;
	expect(&s, r, "c:2 d:8");
	r->gpus = 11;
	expect(&s, r, "needs 11 GPUs; the cluster has 10 in cluster.nodes");
	mo_strs_clear(&r->nodes, &r->n_nodes);
	mo_strs_add(&r->exclude, &r->n_exclude, "b");
	r->gpus = 8;
	expect(&s, r, "d:8");
	s.nodes[3]->state = NODE_SUSPECT;
	expect(&s, r, "needs 8 GPUs; only 6 of 14 are on nodes that take work now");
	s.nodes[3]->state = NODE_UP;
	s.nodes[3]->drain.asked = true;
	expect(&s, r, "needs 8 GPUs; only 6 of 14 are on nodes that take work now");
	s.nodes[3]->drain.asked = false;
	s.nodes[3]->agent.reconciled = false;
	expect(&s, r, "needs 8 GPUs; only 6 of 14 are on nodes that take work now");
	s.nodes[3]->agent.reconciled = true;
	s.nodes[3]->strays.any = true;
	expect(&s, r, "needs 8 GPUs; only 6 of 14 are on nodes that take work now");
	mo_desc_done(&state_desc, &s);
	mo_desc_done(&submit_desc, &spec);
}

static void tensor_groups_stay_on_a_node(void **state)
{
	struct submit spec;
	struct state s;

	world_recipe(&spec, 4);
	spec.recipe.parallelism.tp = 2;
	mo_desc_init(&state_desc, &s);
	add(&s, "a", 3, "x");
	add(&s, "b", 3, "x");
	expect(&s, &spec.recipe, "a:2 b:2");
	spec.recipe.gpus = 6;
	expect(&s, &spec.recipe, "a:3 b:3"); /* it cannot be had */
	mo_desc_done(&state_desc, &s);
	mo_desc_done(&submit_desc, &spec);
}

static void busy_slots_are_left_out(void **state)
{
	struct world w;
	const struct job *j;

	world_init(&w, 1, 8);
	world_submit_gpus(&w, 3);
	world_submit_gpus(&w, 2);
	world_run(&w, S);
	world_verb(&w, IN_CANCEL, 1);
	world_run(&w, 2 * S);
	world_submit_gpus(&w, 4);
	j = world_job(&w, 3);
	assert_int_equal(j->run.places[0].gpus[2], 2);
	assert_int_equal(j->run.places[0].gpus[3], 5); /* 3 and 4 belong to job 2 */
	world_done(&w);
}

static void the_queue_is_in_order(void **state)
{
	struct submit spec;
	struct world w;

	world_init(&w, 1, 4);
	world_recipe(&spec, 3);
	world_submit(&w, &spec); /* 1 runs */
	spec.recipe.gpus = 4;
	world_submit(&w, &spec); /* 2 waits for it */
	spec.recipe.gpus = 1;
	world_submit(&w, &spec); /* 3 would fit, but large jobs do not starve */
	assert_int_equal(world_job(&w, 3)->state, JOB_QUEUED);
	world_waits(&w, 3, WAITING_BEHIND, "waits behind a job ahead of it in the queue",
		    "behind j-2, which needs 4 GPUs, 1 is free");
	spec.recipe.priority = 90;
	world_submit(&w, &spec); /* 4 is more urgent */
	assert_int_equal(world_job(&w, 4)->state, JOB_STARTING);
	spec.recipe.priority = 99;
	spec.recipe.gpus = 5;
	world_submit(&w, &spec); /* 5 can never run here: it holds nobody up */
	assert_string_equal(world_job(&w, 5)->reason, "needs 5 GPUs; the cluster has 4");
	world_verb(&w, IN_CANCEL, 2);
	world_run(&w, S);
	world_verb(&w, IN_CANCEL, 4);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, 3)->state, JOB_RUNNING);
	mo_desc_done(&submit_desc, &spec);
	world_done(&w);
}

static void submit(struct core *core, const struct submit *spec, int64_t now, struct core_out *out)
{
	struct submit *copy = mo_desc_dup(&submit_desc, spec);

	core_turn(core, &(struct core_input){ .type = IN_SUBMIT, .submit = copy }, now, out);
	mo_desc_free(&submit_desc, copy);
}

static void ports_go_round_and_skip_living_jobs(void **state)
{
	struct core_config config = core_config_default;
	struct core_out out = { 0 };
	struct agent_hello h;
	struct submit spec;
	struct core *core;

	config.port_max = config.port_min + 15; /* four groups */
	core = core_new(&config);
	core_turn(core, &(struct core_input){ .type = IN_START }, 1, &out);
	mo_desc_init(&agent_hello_desc, &h);
	h.node = mo_strdup("n0");
	h.boot_id = mo_strdup("b");
	h.instance = mo_strdup("i");
	h.protocol = MO_PROTOCOL;
	for (int64_t i = 0; i < 8; i++)
		MO_ADD(&h.info, gpus, &gpu_slot_desc)->index = i;
	core_turn(core,
		  &(struct core_input){ .type = IN_HELLO,
					.hello = &(struct in_hello){ .message = &h } },
		  2, &out);
	world_recipe(&spec, 1);
	for (int64_t i = 0; i < 3; i++) {
		submit(core, &spec, 3 + i, &out);
		assert_int_equal(job_find(core_state(core), 1 + i)->run.port,
				 config.port_min + 4 * i);
	}
	submit(core, &spec, 10, &out);
	/* all taken: the next in turn; stepd refuses a busy one */
	assert_int_equal(port_next(core), config.port_min);
	mo_desc_done(&agent_hello_desc, &h);
	mo_desc_done(&submit_desc, &spec);
	core_out_done(&out);
	core_free(core);
}

/* That there are enough is said without counting all, and by the same nodes. */
static void enough_is_soon_said(void **state)
{
	static const char *const types[] = { NULL, "mi300x", "mi355x", "mi325x" };
	struct submit spec;
	struct recipe *r = &spec.recipe;
	struct state s;
	int64_t largest;

	world_recipe(&spec, 1);
	mo_desc_init(&state_desc, &s);
	assert_false(place_suits(&s, r));
	add(&s, "a", 4, "mi300x");
	add(&s, "b", 8, "mi300x");
	add(&s, "c", 2, "mi355x");
	mo_strs_add(&r->exclude, &r->n_exclude, "b");
	for (size_t i = 0; i < ELEMENTSOF(types); i++)
		for (r->gpus = 1; r->gpus < 16; r->gpus++) {
			mo_str_set(&r->gpu, types[i]);
			assert_int_equal(place_suits(&s, r),
					 place_suited(&s, r, &largest) >= r->gpus);
		}
	mo_str_set(&r->gpu, NULL);
	r->gpus = 4;
	struct node *last = s.nodes[2];

	s.nodes[2] = NULL; /* not asked */
	assert_true(place_suits(&s, r));
	s.nodes[2] = last;
	mo_desc_done(&submit_desc, &spec);
	mo_desc_done(&state_desc, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),
		cmocka_unit_test(enough_is_soon_said),
		cmocka_unit_test(tensor_groups_stay_on_a_node),
		cmocka_unit_test(busy_slots_are_left_out),
		cmocka_unit_test(the_queue_is_in_order),
		cmocka_unit_test(ports_go_round_and_skip_living_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
