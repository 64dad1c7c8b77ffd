/* Verification after a save, the manifest before a restart, and what of the ledger follows from
 * both. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/base/utf8.h"

struct one {
	struct world w;
	int64_t id;
};

static void submit(struct one *o, size_t nodes, const char *level, int64_t keep)
{
	struct submit spec;

	world_init(&o->w, nodes, 2);
	world_recipe(&spec, (int64_t)nodes * 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = -1;
	spec.recipe.checkpoint.verify = mo_strdup(level);
	spec.recipe.checkpoint.keep = keep;
	o->id = world_submit(&o->w, &spec);
	o->w.verify = true;
	mo_desc_done(&submit_desc, &spec);
}

static int setup(void **state)
{
	struct one *o = *state = mo_alloc(sizeof(*o));

	submit(o, 1, "sizes", 0);
	return 0;
}

static int setup_four(void **state)
{
	struct one *o = *state = mo_alloc(sizeof(*o));

	submit(o, 4, "crc", 0);
	return 0;
}

static int teardown(void **state)
{
	struct one *o = *state;

	world_done(&o->w);
	free(o);
	return 0;
}

static const struct job *job(const struct one *o)
{
	return world_job(&o->w, o->id);
}

static struct found_checkpoint *found(struct one *o, int64_t iteration)
{
	for (size_t i = 0; i < o->w.scan.n_items; i++)
		if (o->w.scan.items[i].iteration == iteration)
			return &o->w.scan.items[i];
	return NULL;
}

static void run(struct one *o, int64_t seconds)
{
	world_run(&o->w, seconds * S);
}

static void announce(struct one *o, int64_t iteration)
{
	struct note *n;

	world_iteration(&o->w, 0, o->id, iteration);
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = iteration;
	if (!found(o, iteration))
		world_found(&o->w, iteration, true);
	if (!found(o, iteration)->manifest)
		found(o, iteration)->manifest = mo_printf("m%lld", (long long)iteration);
}

static const struct checkpoint *ledger(const struct one *o, int64_t iteration)
{
	return checkpoint_find(job(o), iteration);
}

static void crash(struct one *o)
{
	for (size_t i = 0; i < o->w.n_toys; i++)
		world_exit(&o->w, i, o->id, (int64_t)i * 2, i == 0 ? 1 : 0, i == 0 ? 0 : SIGKILL);
	run(o, 40);
}

static void verified_while_it_trains(void **state)
{
	struct one *o = *state;

	run(o, 2);
	announce(o, 10);
	run(o, 2);
	assert_int_equal(ledger(o, 10)->state, CKPT_VERIFIED);
	assert_string_equal(ledger(o, 10)->level, "sizes");
	assert_string_equal(ledger(o, 10)->manifest, "m10");
	assert_int_not_equal(ledger(o, 10)->verified_at, MO_NONE);
	assert_int_equal(o->w.n_verified, 1);
	announce(o, 20);
	found(o, 20)->complete = false;
	run(o, 2);
	assert_int_equal(ledger(o, 20)->state, CKPT_TORN);
	assert_int_equal(job(o)->state, JOB_RUNNING);
}

static void what_changed_is_not_resumed(void **state)
{
	struct one *o = *state;
	int64_t verified_at;

	run(o, 2);
	announce(o, 10);
	run(o, 2);
	announce(o, 20);
	run(o, 2);
	verified_at = ledger(o, 10)->verified_at;
	mo_str_set(&found(o, 20)->manifest, "other");
	crash(o);
	assert_int_equal(job(o)->attempt, 2);
	assert_int_equal(job(o)->run.resume, 10);
	assert_int_equal(ledger(o, 20)->state, CKPT_TORN);
	assert_string_equal(ledger(o, 20)->reason, "a file changed since it was verified");
	assert_int_equal(ledger(o, 10)->state, CKPT_VERIFIED);
	assert_int_equal(ledger(o, 10)->verified_at, verified_at);
	world_iteration(&o->w, 0, o->id, 12);
	/* the attempt did not come to 20: it is still compared, and still torn */
	crash(o);
	assert_int_equal(job(o)->run.resume, 10);
	assert_int_equal(ledger(o, 20)->state, CKPT_TORN);
	announce(o, 20); /* written again */
	run(o, 2);
	assert_int_equal(ledger(o, 20)->state, CKPT_VERIFIED);
	assert_string_equal(ledger(o, 20)->manifest, "other");
}

static void a_helper_that_fails_judges_nothing(void **state)
{
	struct one *o = *state;

	run(o, 2);
	announce(o, 10);
	o->w.scan.error = mo_strdup("it was late");
	run(o, 10);
	assert_int_equal(ledger(o, 10)->state, CKPT_COMPLETE);
	assert_string_equal(ledger(o, 10)->reason, "not verified: it was late");
	assert_int_equal(o->w.n_verified, 1);
	mo_str_set(&o->w.scan.error, NULL);
	announce(o, 20);
	run(o, 2);
	assert_int_equal(ledger(o, 20)->state, CKPT_VERIFIED);
}

/* A snapshot holds text: what is cut is cut behind a whole character. */
static void a_long_reason_is_whole_characters(void **state)
{
	struct one *o = *state;
	struct mo_buf why = { 0 };

	mo_buf_str(&why, "x");
	for (int i = 0; i < 200; i++)
		mo_buf_str(&why, "\u20ac");
	run(o, 2);
	announce(o, 10);
	o->w.scan.error = mo_buf_take(&why);
	run(o, 10);
	assert_true(mo_utf8_valid(ledger(o, 10)->reason, strlen(ledger(o, 10)->reason)));
	assert_true(mo_starts_with(ledger(o, 10)->reason, "not verified: x\u20ac"));
	mo_str_set(&o->w.scan.error, NULL);
}

static void parts_on_all_nodes(void **state)
{
	struct one *o = *state;
	bool parts[5] = { false };

	run(o, 2);
	announce(o, 10);
	run(o, 3);
	assert_int_equal(ledger(o, 10)->state, CKPT_VERIFIED);
	assert_string_equal(ledger(o, 10)->level, "crc");
	for (int64_t i = 0; i < o->w.n_verified; i++) {
		assert_int_equal(o->w.verified[i].parts, 4);
		parts[o->w.verified[i].part] = true;
		if (o->w.verified[i].part < 4)
			assert_int_equal(o->w.verified[i].toy, o->w.verified[i].part);
		else
			assert_int_equal(i, o->w.n_verified - 1);
	}
	for (int i = 0; i < 5; i++)
		assert_true(parts[i]);
}

/* The node that has part 2 is silent: when it is down another one reads that part. */
static void a_lost_node_passes_its_part_on(void **state)
{
	struct one *o = *state;

	run(o, 2);
	o->w.toys[2].deaf = true;
	announce(o, 10);
	run(o, 2);
	assert_int_equal(ledger(o, 10)->state, CKPT_COMPLETE);
	for (int64_t i = 0; i < o->w.n_verified; i++)
		assert_int_not_equal(o->w.verified[i].part, 2);
	for (int i = 0;
	     i < 120 && ledger(o, 10)->state == CKPT_COMPLETE && !job(o)->failure.decided; i++)
		run(o, 1);
	if (ledger(o, 10)->state == CKPT_VERIFIED)
		assert_int_equal(o->w.verified[o->w.n_verified - 2].part, 2);
	else
		assert_int_not_equal(job(o)->state, JOB_RUNNING);
}

static void an_order_ends_with_its_attempt(void **state)
{
	struct one *o = *state;

	run(o, 2);
	o->w.verify = false;
	announce(o, 10);
	run(o, 2);
	assert_int_equal(job(o)->verify.iteration, 10);
	crash(o);
	assert_int_equal(job(o)->attempt, 2);
	assert_int_equal(job(o)->verify.iteration, MO_NONE);
	assert_int_equal(job(o)->run.resume, 10);
	/* by the scan before the attempt */
	assert_int_equal(ledger(o, 10)->state, CKPT_VERIFIED);
	assert_string_equal(ledger(o, 10)->level, "sizes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(verified_while_it_trains, setup, teardown),
		cmocka_unit_test_setup_teardown(what_changed_is_not_resumed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_helper_that_fails_judges_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(parts_on_all_nodes, setup_four, teardown),
		cmocka_unit_test_setup_teardown(a_long_reason_is_whole_characters, setup, teardown),
		cmocka_unit_test_setup_teardown(a_lost_node_passes_its_part_on, setup_four,
						teardown),
		cmocka_unit_test_setup_teardown(an_order_ends_with_its_attempt, setup, teardown),
	};

	return cmocka_run_group_tests_name("dcore/verify", tests, NULL, NULL);
}
