/* Nothing is resumed that nobody looked at since the attempt ended, whatever was said of it before:
 * what the scan before an attempt says of announced checkpoints, and what it is asked. */
#include "tests/unit/dcore/saver.h"

#include <string.h>

static struct found_checkpoint *found(struct saver *o, int64_t iteration)
{
	for (size_t i = 0; i < o->w.scan.n_items; i++)
		if (o->w.scan.items[i].iteration == iteration)
			return &o->w.scan.items[i];
	return NULL;
}

/* It is announced, and this is how it lies there. */
static void lies_there(struct saver *o, int64_t iteration, const char *why_not)
{
	struct found_checkpoint *f;

	saver_save(o, iteration);
	f = found(o, iteration);
	f->complete = !why_not;
	f->bytes = 1000;
	mo_str_set(&f->reason, why_not);
}

static const struct checkpoint *ledger(const struct saver *o, int64_t iteration)
{
	return checkpoint_find(saver_job(o), iteration);
}

/* The newest order to scan all of the directory. */
static const struct command *last_scan(const struct saver *o)
{
	const struct toy *t = &o->w.toys[0];

	for (size_t i = t->n_log; i-- > 0;)
		if (t->log[i].kind == CMD_SCAN && t->log[i].order == ORDER_SCAN)
			return &t->log[i];
	return NULL;
}

static const struct found_checkpoint *told(const struct command *c, int64_t iteration)
{
	for (size_t i = 0; i < c->n_known; i++)
		if (c->known[i].iteration == iteration)
			return &c->known[i];
	return NULL;
}

static void marked(struct saver *o)
{
	saver_marked(o);
	saver_run(o, 2);
	lies_there(o, 10, NULL);
}

/* Power was lost behind the announcement: nobody has verified it, and then the job failed. */
static void an_announcement_does_not_outlive_an_empty_marker(void **state)
{
	struct saver *o = *state;

	marked(o);
	lies_there(o, 20, "COMPLETE is empty");
	assert_int_equal(saver_state(o, 20), CKPT_COMPLETE);
	saver_crash(o);
	saver_resumed(o, 2, 10);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	assert_string_equal(ledger(o, 20)->reason, "COMPLETE is empty");
	assert_true(world_event_seen(&o->w, "checkpoint.torn"));
}

static void nor_a_file_that_is_cut(void **state)
{
	struct saver *o = *state;

	marked(o);
	lies_there(o, 20, "model.pt: it is cut");
	o->w.old_agents = true;
	saver_crash(o);
	saver_resumed(o, 2, 10);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
}

static void an_announced_one_needs_no_marker(void **state)
{
	struct saver *o = *state;
	const struct found_checkpoint *f;

	marked(o);
	lies_there(o, 20, "COMPLETE is missing");
	saver_crash(o);
	saver_resumed(o, 2, 20);
	f = told(last_scan(o), 20);
	assert_non_null(f);
	assert_true(f->complete);
	assert_null(f->manifest);
	assert_string_equal(f->path, "/ckpt/20");
	assert_string_equal(f->level, "sizes");
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	/* looked at once more, it still needs none */
	saver_crash(o);
	saver_resumed(o, 3, 20);
	assert_true(told(last_scan(o), 20)->complete);
}

/* They ask for the marker, say so, and looked no further. */
static void agents_of_before_are_not_told(void **state)
{
	struct saver *o = *state;

	marked(o);
	lies_there(o, 20, "COMPLETE is missing");
	o->w.old_agents = true;
	saver_crash(o);
	saver_resumed(o, 2, 20);
	assert_int_equal(saver_state(o, 20), CKPT_COMPLETE);
	/* what is gone is gone */
	found(o, 20)->bytes = 0;
	saver_crash(o);
	saver_resumed(o, 3, 10);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
}

/* An attempt that writes it again, and did not say yet that it is whole. */
static void the_word_is_of_one_save(void **state)
{
	struct saver *o = *state;

	marked(o);
	lies_there(o, 20, "COMPLETE is missing");
	saver_crash(o);
	saver_resumed(o, 2, 20);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 3);
	saver_resumed(o, 3, 10);
	world_iteration(&o->w, 0, o->id, 20);
	world_note(&o->w, 0, o->id, NOTE_SAVING)->iteration = 20;
	saver_run(o, 1);
	saver_crash(o);
	saver_resumed(o, 4, 10);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	assert_string_equal(ledger(o, 20)->reason, "COMPLETE is missing");
}

/* The newest that may be resumed from are opened, also behind newer ones that may not. */
static void what_a_person_goes_back_to_is_opened(void **state)
{
	struct saver *o = *state;
	const struct command *c;

	marked(o);
	for (int64_t i = 20; i <= 80; i += 10)
		lies_there(o, i, NULL);
	assert_int_equal(saver_restart(o, 60), 200);
	saver_run(o, 3);
	saver_resumed(o, 2, 60);
	c = last_scan(o);
	for (int64_t i = 10; i <= 80; i += 10)
		if (i >= 30 && i <= 60)
			assert_string_equal(told(c, i)->level, "sizes");
		else
			assert_null(told(c, i)->level);
}

#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_announcement_does_not_outlive_an_empty_marker),
		T(nor_a_file_that_is_cut),
		T(an_announced_one_needs_no_marker),
		T(agents_of_before_are_not_told),
		T(the_word_is_of_one_save),
		T(what_a_person_goes_back_to_is_opened),
	};

	return cmocka_run_group_tests_name("dcore/rotten", tests, NULL, NULL);
}
