/* Each promise of state_check() is broken by hand, and must be named. All other beds ask
 * it after every turn, so that it is silent about what is whole is shown there. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/update/claims.h"
#include "daemon/core/update/check.h"
#include "daemon/core/update/edit.h"

/* j-1 runs on both nodes, j-2 beside it on n1, j-3 has ended, j-4 has just got its GPU on n1. */
static struct job *job(struct core *c, int64_t id)
{
	return job_edit(&c->owned, id);
}

static struct live *live(struct core *c, size_t node)
{
	return c->lives[node];
}

/* Of a list that is cut by one, so that what it owns can be freed at the end. */
static size_t *cut_list;

static void cut(size_t *n)
{
	cut_list = n;
	--*n;
}

static void ledger_sum(struct core *c)
{
	job(c, 1)->ledger[GPU_IDLE]++;
}

static void ledger_negative(struct core *c)
{
	job(c, 1)->ledger[GPU_IDLE] -= 5;
	job(c, 1)->ledger[GPU_HANG] += 5;
}

static void ledger_end(struct core *c)
{
	job(c, 3)->ledger_at++;
	job(c, 3)->created_at++;
}

static void place_unknown(struct core *c)
{
	mo_str_set(&job(c, 1)->run.places[0].node, "n9");
}

static void place_slot(struct core *c)
{
	job(c, 4)->run.places[0].gpus[0] = 77;
}

static void slots_kept(struct core *c)
{
	c->lives[1]->slots.n_free = 4;
}

static void slots_usable(struct core *c)
{
	c->lives[0]->slots.usable = false;
}

static void tally_free(struct core *c)
{
	c->tally.free++;
}

static void tally_awaited(struct core *c)
{
	c->tally.awaited++;
}

static void tally_nodes(struct core *c)
{
	c->tally.nodes[NODE_DOWN]++;
}

static void tally_jobs(struct core *c)
{
	c->tally.jobs[JOB_RUNNING]--;
}

static void place_obeyed(struct core *c)
{
	c->owned.nodes[1]->agent.obeys = c->owned.epoch + 1;
}

static void places_order(struct core *c)
{
	struct place *p = job(c, 1)->run.places, first = p[0];

	p[0] = p[1];
	p[1] = first;
	p[0].first_rank = 0;
	p[1].first_rank = p[0].n_ranks;
}

static void places_ranks(struct core *c)
{
	job(c, 1)->run.places[1].first_rank++;
}

static void places_count(struct core *c)
{
	cut(&job(c, 1)->run.n_ranks);
}

static void places_final(struct core *c)
{
	struct job *j = job(c, 1);

	j->state = JOB_COMPLETED;
	j->ended_at = j->ledger_at;
	c->active_bytes -= c->texts[0].bytes;
	ids_remove(c->unfinished, &c->n_unfinished, 1);
	memmove(c->texts, c->texts + 1, --c->n_texts * sizeof(*c->texts));
}

static void attempts_restarts(struct core *c)
{
	job(c, 1)->restarts = 2;
}

static void attempts_none(struct core *c)
{
	job(c, 1)->attempt = 0;
}

static void attempts_step(struct core *c)
{
	job(c, 1)->steps[1].attempt = 9;
}

static void attempts_order(struct core *c)
{
	struct step *st = job(c, 1)->steps, first = st[0];

	st[0] = st[1];
	st[1] = first;
}

static void attempts_failed(struct core *c)
{
	struct job *j = job(c, 1);

	MO_ADD(j, incidents, &incident_desc)->attempt = 1;
	MO_ADD(j, incidents, &incident_desc)->attempt = 1;
}

static void lives_before(struct core *c)
{
	job(c, 1)->attempt = 2;
}

static void lives_forgotten(struct core *c)
{
	job(c, 1)->steps[0].forgotten = true;
}

static void count_started(struct core *c)
{
	job(c, 1)->counts.started--;
}

static void count_dead(struct core *c)
{
	job(c, 1)->counts.dead++;
}

static void count_trouble(struct core *c)
{
	job(c, 1)->counts.trouble++;
}

static void count_exited(struct core *c)
{
	job(c, 1)->counts.exited++;
}

static void count_silent(struct core *c)
{
	job(c, 1)->counts.silent++;
}

static void count_drained(struct core *c)
{
	job(c, 1)->counts.drained++;
}

static void count_forgotten(struct core *c)
{
	job(c, 1)->counts.forgotten++;
}

static void checkpoints_order(struct core *c)
{
	struct job *j = job(c, 1);

	MO_ADD(j, checkpoints, &checkpoint_desc)->iteration = 20;
	MO_ADD(j, checkpoints, &checkpoint_desc)->iteration = 10;
}

static void texts_job(struct core *c)
{
	c->texts[0].bytes++;
	c->active_bytes++;
}

static void texts_jobs(struct core *c)
{
	struct job_texts *t = MO_GROW(c->texts, c->n_texts);

	*t = (struct job_texts){ .job = 1000, .bytes = 1 };
}

static void texts_active(struct core *c)
{
	c->active_bytes++;
}

static void texts_retained(struct core *c)
{
	c->retained_bytes++;
}

static void texts_retained_jobs(struct core *c)
{
	mo_ints_add(&c->retained, &c->n_retained, 3);
}

static void index_unfinished(struct core *c)
{
	c->unfinished[0] = -1;
}

static void index_holders(struct core *c)
{
	c->owned.holders[0] = -1;
}

static void index_ending(struct core *c)
{
	job(c, 3)->scan.at_end = true;
	ids_add(&c->ending, &c->n_ending, 99);
}

static void total_unfinished(struct core *c)
{
	ids_add(&c->unfinished, &c->n_unfinished, 99);
}

static void total_holders(struct core *c)
{
	ids_add(&c->owned.holders, &c->owned.n_holders, 99);
}

static void total_ending(struct core *c)
{
	ids_add(&c->ending, &c->n_ending, 99);
}

static void dirty_twice(struct core *c)
{
	ids_add(&c->dirty, &c->n_dirty, 1);
	ids_add(&c->dirty, &c->n_dirty, 2);
	c->dirty[0] = 2;
}

static void node_unaware(struct core *c)
{
	ids_remove(live(c, 1)->jobs, &live(c, 1)->n_jobs, 1);
}

static void node_unasked(struct core *c)
{
	mo_strs_add(&job(c, 1)->checks.nodes, &job(c, 1)->checks.n_nodes, "n0");
}

static void node_counts(struct core *c)
{
	ids_add(&live(c, 0)->jobs, &live(c, 0)->n_jobs, 2);
}

static void order_jobs(struct core *c)
{
	c->owned.next_job = 4;
}

static void order_nodes(struct core *c)
{
	char *first = c->owned.nodes[0]->name;

	c->owned.nodes[0]->name = c->owned.nodes[1]->name;
	c->owned.nodes[1]->name = first;
}

static void order_events(struct core *c)
{
	c->owned.next_event_seq--;
}

static void gpu_twice(struct core *c)
{
	job(c, 2)->run.places[0].gpus[0] = job(c, 1)->run.places[1].gpus[0];
}

static void dir_twice(struct core *c)
{
	mo_str_set(&job(c, 1)->saves.dir, "/shared/run");
	mo_str_set(&job(c, 2)->saves.dir, "/shared/run");
	claims_add_job(c, job(c, 1));
	claims_add_job(c, job(c, 2));
}

static void claim_lost(struct core *c)
{
	c->names.items[0].job = 99;
}

static void spare_of(struct core *c, int64_t id, int64_t spares)
{
	job(c, id)->spec.recipe.spares = spares;
	c->owned.nodes[0]->spare.job = id;
	c->n_spares = 1;
}

static void spare_unasked(struct core *c)
{
	spare_of(c, 1, 0);
}

static void spare_ended(struct core *c)
{
	spare_of(c, 3, 1);
}

static void spare_ranks(struct core *c)
{
	spare_of(c, 4, 1);
}

static void nodes_draining(struct core *c)
{
	c->n_draining++;
}

static void nodes_leaving(struct core *c)
{
	c->n_leaving++;
}

static void nodes_cordoned(struct core *c)
{
	c->n_cordoned++;
}

static void nodes_hardware(struct core *c)
{
	c->n_cordoned_hardware++;
}

static const struct {
	void (*break_it)(struct core *c);
	const char *says;
	bool kept; /* what is kept of free slots; in others it follows the break */
} breaks[] = {
	{ ledger_sum, "the ledger of j-1 does not close" },
	{ ledger_negative, "the ledger of j-1 is below nothing: -5 in category 10" },
	{ ledger_end, "the ledger of j-3 does not end with it" },
	{ place_unknown, "j-1 has a place on n9, which is no node" },
	{ place_slot, "j-4 has GPU 77 of n1, which has none of that number" },
	{ place_obeyed, "j-4 begins on n1, which obeyed epoch" },
	{ places_order, "the places of j-1 do not ascend at n0" },
	{ places_ranks, "the ranks of j-1 do not follow each other on n1" },
	{ places_count, "j-1 has 6 GPUs and 6 ranks of 6 and 5" },
	{ places_final, "j-1 is completed and holds GPUs" },
	{ attempts_restarts, "j-1 has restarted 2 times in 1 attempts" },
	{ attempts_none, "j-1 holds GPUs without an attempt" },
	{ attempts_step, "j-1, of 1 attempts, has a step of attempt 9" },
	{ attempts_order, "the steps of j-1 do not ascend at attempt 1 on n0" },
	{ attempts_failed, "attempt 1 of j-1 failed twice" },
	{ lives_before, "attempt 1 of j-1 is over, and its step on n0 may live" },
	{ lives_forgotten, "the step of attempt 1 of j-1 on n0 is forgotten and may live" },
	{ count_started, "j-1 counts 1 steps that run, and there are 2" },
	{ count_dead, "j-1 counts 1 dead steps, and there are 0" },
	{ count_trouble, "j-1 counts 1 steps in trouble, and there are 0" },
	{ count_exited, "j-1 counts 1 ranks that ended, and there are 0" },
	{ count_silent, "j-1 counts 1 steps on silent nodes, and there are 0" },
	{ count_drained, "j-1 counts 1 places on drained nodes, and there are 0" },
	{ count_forgotten, "j-1 counts 1 forgotten steps, and there are 0" },
	{ checkpoints_order, "the checkpoints of j-1 do not ascend at 10" },
	{ texts_job, "the texts of j-1 count" },
	{ texts_jobs, "jobs with texts are counted" },
	{ texts_active, "bytes of texts of unfinished jobs are counted" },
	{ texts_retained, "1 bytes of texts of finished jobs are counted, and there are 0" },
	{ texts_retained_jobs, "1 finished jobs with texts are counted, and there are 0" },
	{ index_unfinished, "j-1 is running, and the index of unfinished jobs differs" },
	{ index_holders, "j-1 has 2 steps, and the index of those that have any differs" },
	{ index_ending, "j-3: the index of those whose last checkpoints are looked at differs" },
	{ total_unfinished, "4 unfinished jobs are counted, and there are 3" },
	{ total_holders, "4 jobs with steps are counted, and there are 3" },
	{ total_ending, "1 jobs that end are counted, and there are 0" },
	{ dirty_twice, "j-2 stands twice in the jobs to look at, or not in order" },
	{ node_unaware, "n1 does not know that it has a step of j-1" },
	{ node_unasked, "n0 does not know that j-1 waits for its checks" },
	{ node_counts, "n0 has no step of j-2, and counts one" },
	{ order_jobs, "j-4 is out of order, the next new one is j-4" },
	{ order_nodes, "node n0 is out of order" },
	{ order_events, "is out of order, the next new one is" },
	{ gpu_twice, "of n1 is held by j-" },
	{ dir_twice, "j-1 and j-2 both save to /shared/run" },
	{ claim_lost, "j-1 is not found by its name" },
	{ spare_unasked, "n0 is a spare of j-1, which is running and asks for 0" },
	{ spare_ended, "n0 is a spare of j-3, which is cancelled and asks for 1" },
	{ spare_ranks, "n0 is a spare of j-4 and has ranks of j-1" },
	{ nodes_draining, "1 draining nodes are counted, and there are 0" },
	{ nodes_leaving, "1 leaving nodes are counted, and there are 0" },
	{ nodes_cordoned, "1 cordoned nodes are counted, and there are 0" },
	{ nodes_hardware, "1 nodes cordoned for their hardware are counted, and there are 0" },
	{ slots_kept, "n1 has 0 free slots (usable 1, well 1, no spare), and kept are 4 free",
	  true },
	{ slots_usable, "and kept are 0 free slots (usable 0, well 1, no spare)", true },
	{ tally_free, "1 free GPUs are counted, and there are 0", true },
	{ tally_awaited, "1 nodes that are awaited are counted, and there are 0", true },
	{ tally_nodes, "1 nodes are counted that are down, and there are 0", true },
	{ tally_jobs, "1 jobs are counted that are running, and there are 2", true },
};

static void set_up(struct world *w)
{
	world_init(w, 2, 4);
	world_submit_running(w, 6, 0);
	world_submit_gpus(w, 1);
	world_run(w, S);
	world_verb(w, IN_CANCEL, world_submit_gpus(w, 8));
	w->no_launch = true;
	assert_int_equal(world_submit_gpus(w, 1), 4);
	assert_int_equal(world_job(w, 1)->run.n_places, 2);
	assert_int_equal(world_job(w, 2)->state, JOB_RUNNING);
	assert_int_equal(world_job(w, 3)->state, JOB_CANCELLED);
	assert_int_equal(world_job(w, 4)->state, JOB_STARTING);
}

static void test_what_is_broken_is_named(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(breaks); i++) {
		struct world w;
		char *wrong;

		set_up(&w);
		cut_list = NULL;
		breaks[i].break_it(w.core);
		if (!breaks[i].kept)
			slots_touch_all(w.core);
		wrong = state_check(w.core);
		if (!wrong)
			wrong = state_check_placed(w.core);
		if (!wrong || !strstr(wrong, breaks[i].says))
			fail_msg("break %zu: '%s' does not say '%s'", i, wrong ? wrong : "nothing",
				 breaks[i].says);
		free(wrong);
		if (cut_list)
			++*cut_list;
		world_done(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_broken_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
