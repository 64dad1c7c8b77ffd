/* Attempts that die while they load a checkpoint: the second death takes the one before it, never a
 * fresh start; what does not count against it; how it is compared, and taken again. */
#include "tests/unit/dcore/saver.h"

#include <signal.h>
#include <string.h>

#include "daemon/core/view/why_view.h"

static const struct checkpoint *ledger(const struct saver *o, int64_t iteration)
{
	return checkpoint_find(saver_job(o), iteration);
}

static struct found_checkpoint *found(struct saver *o, int64_t iteration)
{
	for (size_t i = 0; i < o->w.scan.n_items; i++)
		if (o->w.scan.items[i].iteration == iteration)
			return &o->w.scan.items[i];
	return NULL;
}

static void phase(struct saver *o, int what)
{
	world_note(&o->w, 0, o->id, NOTE_PHASE)->phase = what;
	saver_run(o, 1);
}

static void dies(struct saver *o, int64_t code, int64_t signal)
{
	world_exit(&o->w, 0, o->id, 0, code, signal);
	saver_run(o, 3);
}

static void dies_loading(struct saver *o)
{
	phase(o, PHASE_LOAD);
	dies(o, 1, 0);
}

static void save(struct saver *o, int64_t iteration)
{
	struct note *n;

	world_iteration(&o->w, 0, o->id, iteration);
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(&o->w, iteration, true);
	found(o, iteration)->manifest = mo_printf("m%lld", (long long)iteration);
	saver_run(o, 2);
}

/* Checkpoints at 10, 20 ... n; the attempt that saved them died a little behind the last. */
static void saved_up_to(struct saver *o, int64_t n)
{
	saver_run(o, 2);
	for (int64_t i = 10; i <= n; i += 10)
		save(o, i);
	world_iteration(&o->w, 0, o->id, n + 3);
	saver_crash(o);
	saver_resumed(o, 2, n);
}

static void the_second_death_takes_the_one_before(void **state)
{
	struct saver *o = *state;

	saved_up_to(o, 20);
	dies_loading(o);
	saver_resumed(o, 3, 20);
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	assert_int_equal(ledger(o, 20)->failed_loads, 1);
	assert_string_equal(ledger(o, 20)->reason,
			    "attempt 2 loaded it and died before a new iteration: rank 0 on n0: "
			    "exit code 1; it said: last words");
	dies_loading(o);
	saver_resumed(o, 4, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUSPECT);
	assert_non_null(strstr(ledger(o, 20)->reason, "; so did attempt 3: rank 0 on n0: exit"));
	assert_int_equal(world_events(&o->w, "checkpoint.suspect"), 1);
	world_why_has(&o->w, o->id, "checkpoint 20 is suspect, and not resumed from");
	/* looked at again it is whole, and stays suspect */
	world_iteration(&o->w, 0, o->id, 12);
	saver_crash(o);
	saver_resumed(o, 5, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUSPECT);
	/* until the job writes it again */
	saver_save(o, 20);
	mo_str_set(&found(o, 20)->manifest, "m20b");
	saver_crash(o);
	saver_resumed(o, 6, 20);
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	assert_int_equal(ledger(o, 20)->failed_loads, MO_NONE);
}

/* The node that the job's ranks are on. */
static size_t node_of(const struct saver *o)
{
	for (size_t i = 0; i < o->w.n_toys; i++)
		if (mo_streq(o->w.toys[i].name, saver_job(o)->run.places[0].node))
			return i;
	fail_msg("it is on no node");
	return 0;
}

/* It was lost on a node, dies there of what it loads, is sent elsewhere, and dies there of the
 * same: what is the same on both nodes is the checkpoint. */
static void on_another_node_it_is_the_checkpoint_still(void **state)
{
	struct saver *o = *state;

	saver_on(o, 3);
	saved_up_to(o, 20);
	for (int64_t attempt = 3; attempt <= 4; attempt++) {
		size_t node = node_of(o);

		world_note(&o->w, node, o->id, NOTE_PHASE)->phase = PHASE_LOAD;
		world_exit(&o->w, node, o->id, 0, MO_NONE, SIGBUS);
		saver_run(o, 3);
		assert_true(saver_job(o)->incidents[0].elsewhere ||
			    saver_job(o)->incidents[1].elsewhere);
		saver_resumed(o, attempt, attempt == 3 ? 20 : 10);
	}
	assert_string_not_equal(saver_job(o)->incidents[1].node, saver_job(o)->incidents[2].node);
	assert_int_equal(saver_state(o, 20), CKPT_SUSPECT);
}

/* Its content is compared behind the first death and found rotten, while the attempt on the other
 * node loads it: that one's death is the checkpoint's too, and no word about the program. */
static void on_another_node_what_is_rotten_is_not_the_program(void **state)
{
	struct saver *o = *state;
	size_t node;

	saver_compares(o, "crc", 3);
	saved_up_to(o, 20);
	o->w.rotten = 20;
	for (int64_t attempt = 3; attempt <= 4; attempt++) {
		node = node_of(o);
		world_note(&o->w, node, o->id, NOTE_PHASE)->phase = PHASE_LOAD;
		world_exit(&o->w, node, o->id, 0, MO_NONE, SIGBUS);
		saver_run(o, 3);
		saver_resumed(o, attempt, attempt == 3 ? 20 : 10);
		if (attempt == 3)
			saver_run(o, 2);
		assert_int_equal(saver_state(o, 20), CKPT_TORN);
	}
	assert_string_not_equal(saver_job(o)->incidents[1].node, saver_job(o)->incidents[2].node);
}

static void the_reason_names_it(void **state)
{
	struct saver *o = *state;

	saved_up_to(o, 20);
	dies_loading(o);
	phase(o, PHASE_LOAD);
	o->w.no_scan = true;
	dies(o, 1, 0);
	assert_non_null(strstr(saver_job(o)->reason, "looks for checkpoints"));
	assert_true(world_event_seen(&o->w, "job.recovering"));
}

/* It loaded: what killed the attempt before was something else. */
static void an_iteration_clears_it(void **state)
{
	struct saver *o = *state;

	saved_up_to(o, 20);
	dies_loading(o);
	world_iteration(&o->w, 0, o->id, 21);
	saver_run(o, 1);
	assert_int_equal(ledger(o, 20)->failed_loads, MO_NONE);
	assert_null(ledger(o, 20)->reason);
	dies(o, 0, SIGSEGV);
	saver_resumed(o, 4, 20);
	dies_loading(o);
	saver_resumed(o, 5, 20);
}

static void without_an_older_one_a_person_is_waited_for(void **state)
{
	struct saver *o = *state;

	saved_up_to(o, 10);
	dies_loading(o);
	dies_loading(o);
	saver_run(o, 60);
	assert_int_equal(saver_job(o)->state, JOB_RECOVERING);
	assert_int_equal(saver_job(o)->attempt, 3);
	assert_non_null(strstr(saver_job(o)->reason,
			       "checkpoint 10 in /ckpt is suspect, and no other one is left: "
			       "attempt 2 loaded it and died before a new iteration"));
	assert_non_null(strstr(saver_job(o)->reason, "'moectl restart j-1 --from 10' takes it"));
	assert_non_null(strstr(saver_job(o)->reason, "'moectl restart j-1 --from 0'"));
	/* who names it gets it, and once more it is counted */
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 3);
	saver_resumed(o, 4, 10);
	dies_loading(o);
	saver_run(o, 40);
	assert_int_equal(saver_job(o)->attempt, 4);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 3);
	saver_resumed(o, 5, 10);
	world_iteration(&o->w, 0, o->id, 11);
	saver_run(o, 1);
	assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
}

static void what_does_not_count(void **state)
{
	struct saver *o = *state;

	saved_up_to(o, 20);
	phase(o, PHASE_LOAD);
	dies(o, 0, SIGKILL); /* somebody sent it */
	saver_resumed(o, 3, 20);
	phase(o, PHASE_INIT);
	dies(o, 1, 0); /* it had not come to it */
	saver_resumed(o, 4, 20);
	phase(o, PHASE_LOAD);
	world_reboot(&o->w, 0); /* the node's */
	saver_run(o, 5);
	saver_resumed(o, 5, 20);
	phase(o, PHASE_LOAD);
	assert_int_equal(saver_restart(o, MO_NONE), 200); /* a person's */
	saver_run(o, 5);
	saver_resumed(o, 6, 20);
	assert_int_equal(ledger(o, 20)->failed_loads, MO_NONE);
	dies(o, 0, SIGSEGV);
	assert_int_equal(ledger(o, 20)->failed_loads, 1);
}

/* So many are not damaged alike. */
static void checkpoint_behind_checkpoint_is_the_program(void **state)
{
	struct saver *o = *state;

	saved_up_to(o, 60);
	for (int i = 0; i < 6; i++)
		dies_loading(o);
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_int_equal(saver_job(o)->attempt, 7);
	assert_int_equal(saver_state(o, 40), CKPT_SUSPECT);
	assert_int_equal(saver_state(o, 30), CKPT_VERIFIED);
	assert_true(mo_starts_with(saver_job(o)->reason,
				   "3 checkpoints in a row, the newest 60, were each loaded by"));
}

static const struct command *read_again(const struct saver *o, int64_t iteration)
{
	const struct toy *t = &o->w.toys[0];
	const struct command *c = NULL;

	for (size_t i = 0; i < t->n_log; i++)
		if (t->log[i].kind == CMD_SCAN && t->log[i].only == iteration)
			c = &t->log[i];
	if (!c)
		fail_msg("no scan of it");
	return c;
}

/* With checksums of after the save its content is read again, beside the attempt that follows. */
static void its_content_is_compared(void **state)
{
	struct saver *o = *state;
	const struct command *c;

	saver_compares(o, "crc", 1);
	saved_up_to(o, 20);
	assert_string_equal(ledger(o, 20)->level, "crc");
	dies_loading(o);
	saver_run(o, 2);
	c = read_again(o, 20);
	assert_int_equal(c->n_known, 1);
	assert_string_equal(c->known[0].level, "crc");
	assert_string_equal(c->known[0].manifest, "m20");
	assert_true(ledger(o, 20)->compared);
	assert_non_null(strstr(ledger(o, 20)->reason, "last words; its content is as it was"));
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	dies_loading(o);
	saver_resumed(o, 4, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUSPECT);
}

static void rot_is_found_behind_one_death(void **state)
{
	struct saver *o = *state;

	saver_compares(o, "crc", 1);
	saved_up_to(o, 20);
	o->w.rotten = 20;
	dies_loading(o);
	saver_run(o, 2);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	assert_string_equal(ledger(o, 20)->reason, "its content is not what was verified");
	dies_loading(o);
	saver_resumed(o, 4, 10);
}

/* Changed behind the scan that its attempt began with, and brought back: what was found by names,
 * sizes and times any scan sees, and only then its content is read. */
static void what_was_brought_back_is_read(void **state)
{
	struct saver *o = *state;

	saver_compares(o, "crc", 1);
	saved_up_to(o, 20);
	phase(o, PHASE_LOAD);
	world_exit(&o->w, 0, o->id, 0, 1, 0);
	while (saver_job(o)->attempt < 3)
		world_run(&o->w, 1000);
	mo_str_set(&found(o, 20)->manifest, "other");
	saver_run(o, 3);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	assert_false(ledger(o, 20)->compared);
	mo_str_set(&found(o, 20)->manifest, "m20");
	dies_loading(o);
	saver_run(o, 2);
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	assert_true(ledger(o, 20)->compared);
	assert_string_equal(ledger(o, 20)->reason,
			    "suspected; its content is as it was verified (CRC32C)");
}

/* They compare the manifest alone, and nothing is claimed. */
static void agents_of_before_compare_nothing(void **state)
{
	struct saver *o = *state;

	saver_compares(o, "crc", 1);
	saved_up_to(o, 20);
	o->w.rotten = 20;
	o->w.old_agents = true;
	dies_loading(o);
	saver_run(o, 2);
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	assert_non_null(strstr(ledger(o, 20)->reason, "its content was not compared: its agent"));
	/* nor of a part of it, whoever puts them together */
	saver_compares_in_parts(o, "sizes");
	saved_up_to(o, 20);
	o->w.old_agents = true;
	o->w.n_verified = 0;
	phase(o, PHASE_LOAD);
	world_exit(&o->w, 0, o->id, 0, 1, 0);
	for (int i = 0; o->w.n_verified == 0 && i < 10; i++)
		saver_run(o, 1);
	assert_int_equal(o->w.verified[0].parts, 2);
	o->w.old_agents = false;
	saver_run(o, 3);
	assert_non_null(strstr(ledger(o, 20)->reason, "its content was not compared: its agent"));
}

/* Verified at any other level all of it is read, with what its files carry: beside the attempts,
 * which wait for nothing. */
static void without_checksums_all_of_it_is_read(void **state)
{
	static const char *const levels[] = { "sizes", "marker" };
	struct saver *o = *state;

	for (size_t i = 0; i < ELEMENTSOF(levels); i++) {
		saver_compares(o, levels[i], 1);
		saved_up_to(o, 20);
		assert_string_equal(ledger(o, 20)->level, levels[i]);
		dies_loading(o);
		saver_resumed(o, 3, 20);
		saver_run(o, 2);
		assert_string_equal(read_again(o, 20)->known[0].level, "read");
		assert_true(ledger(o, 20)->compared);
		assert_non_null(strstr(ledger(o, 20)->reason, "last words; all of it can be read"));
		assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
		dies_loading(o);
		saver_resumed(o, 4, 10);
		assert_int_equal(saver_state(o, 20), CKPT_SUSPECT);
	}
}

static void what_is_damaged_is_found_without_checksums_too(void **state)
{
	struct saver *o = *state;

	saver_compares(o, "sizes", 1);
	saved_up_to(o, 20);
	o->w.rotten = 20;
	dies_loading(o);
	saver_run(o, 2);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	dies_loading(o);
	saver_resumed(o, 4, 10);
}

#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_second_death_takes_the_one_before),
		T(on_another_node_it_is_the_checkpoint_still),
		T(on_another_node_what_is_rotten_is_not_the_program),
		T(the_reason_names_it),
		T(an_iteration_clears_it),
		T(without_an_older_one_a_person_is_waited_for),
		T(what_does_not_count),
		T(checkpoint_behind_checkpoint_is_the_program),
		T(its_content_is_compared),
		T(rot_is_found_behind_one_death),
		T(what_was_brought_back_is_read),
		T(agents_of_before_compare_nothing),
		T(without_checksums_all_of_it_is_read),
		T(what_is_damaged_is_found_without_checksums_too),
	};

	return cmocka_run_group_tests_name("dcore/suspect", tests, NULL, NULL);
}
