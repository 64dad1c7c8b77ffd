/* Whether the checkpoints that are due fit, and who is told: of 100 bytes each, every 10
 * iterations. */
#include "daemon/core/state/space.h"

#include <string.h>

#include "daemon/core/view/why.h"
#include "tests/unit/dcore/saver.h"

#define SPACE "checkpoint.space"

static void save(struct saver *o, int64_t iteration, int64_t free_bytes)
{
	o->w.scan.free_bytes = free_bytes;
	saver_save(o, iteration);
	saver_run(o, 2);
	assert_int_equal(saver_state(o, iteration), CKPT_VERIFIED);
}

static void is(const struct saver *o, enum space_level level, int64_t fits, int64_t due)
{
	struct space s = space_of(saver_job(o));

	assert_int_equal(s.level, level);
	assert_int_equal(s.fits, fits);
	assert_int_equal(s.due, due);
}

static void said(const struct saver *o, const char *text)
{
	struct space s = space_of(saver_job(o));
	_cleanup_(mo_freep) char *t = space_text(saver_job(o), &s);

	if (!text || !t)
		assert_ptr_equal(t, text);
	else
		assert_string_equal(t, text);
}

static void a_run_that_will_not_fit_is_told_at_its_first_save(void **state)
{
	struct saver *o = *state;

	saver_steps(o, 100, 10, 0);
	saver_run(o, 2);
	is(o, SPACE_UNKNOWN, 0, 10);
	save(o, 10, 850);
	is(o, SPACE_LOW, 8, 9);
	said(o, "8 more checkpoints of 100 B fit in /ckpt (850 B free), and 9 are due: it is full "
		"at iteration 100");
	assert_int_equal(world_events(&o->w, SPACE), 1);
	world_why_has(&o->w, o->id, "8 more checkpoints of 100 B fit in /ckpt");
	world_next_has(&o->w, o->id, "make room in /ckpt");
	save(o, 20, 750); /* nothing new */
	assert_int_equal(world_events(&o->w, SPACE), 1);
	save(o, 30, 99); /* somebody else wrote there */
	is(o, SPACE_FULL, 0, 7);
	said(o, "the next checkpoint of 100 B does not fit in /ckpt (99 B free)");
	assert_int_equal(world_events(&o->w, SPACE), 2);
	save(o, 40, 20); /* it went on another way */
	assert_int_equal(world_events(&o->w, SPACE), 2);
}

static void what_fits_is_told_to_nobody(void **state)
{
	struct saver *o = *state;

	saver_steps(o, 100, 10, 0);
	saver_run(o, 2);
	save(o, 10, 900);
	is(o, SPACE_ENOUGH, 9, 9);
	said(o, NULL);
	assert_false(world_event_seen(&o->w, SPACE));
	assert_int_equal(saver_job(o)->progress.shown.checkpoint_free_bytes, 900);
	assert_int_equal(saver_job(o)->progress.shown.checkpoints_fit, 9);
}

/* The oldest goes when the newest is whole. */
static void keep_needs_room_for_one_more(void **state)
{
	struct saver *o = *state;

	saver_steps(o, 1000, 10, 2);
	saver_run(o, 2);
	save(o, 10, 200);
	is(o, SPACE_ENOUGH, 2, 2);
	save(o, 20, 100);
	is(o, SPACE_ENOUGH, 1, 1);
	o->w.no_scan = true; /* the first lies there until a node has removed it */
	save(o, 30, 0);
	is(o, SPACE_ENOUGH, 1, 1);
	o->w.no_scan = false;
	o->w.scan.free_bytes = 100;
	saver_run(o, 3);
	is(o, SPACE_ENOUGH, 1, 1);
	assert_false(world_event_seen(&o->w, SPACE));
	save(o, 40, 99);
	is(o, SPACE_FULL, 0, 1);
	assert_int_equal(world_events(&o->w, SPACE), 1);
}

/* A node that says impossible sizes: no sum of them leaves its range. */
static void as_large_as_a_number(void **state)
{
	struct saver *o = *state;

	saver_steps(o, 1000, 10, 1);
	saver_run(o, 2);
	save(o, 10, 1LL << 60);
	o->w.no_scan = true;
	for (int64_t i = 20; i < 60; i += 10) {
		o->w.scan.items[0].bytes = 1LL << 60;
		save(o, i, 1LL << 60);
	}
	for (size_t i = 0; i < saver_job(o)->n_checkpoints; i++)
		((struct job *)saver_job(o))->checkpoints[i].bytes = 1LL << 60;
	struct space s = space_of(saver_job(o));
	assert_in_range(s.fits, 1, 10);
	assert_int_equal(s.free, 1LL << 60);
	for (size_t i = 0; i < saver_job(o)->n_checkpoints; i++)
		((struct job *)saver_job(o))->checkpoints[i].bytes =
			job_find(core_state(o->w.shadow), o->id)->checkpoints[i].bytes;
}

static void the_last_save_needs_none_behind_it(void **state)
{
	struct saver *o = *state;

	saver_steps(o, 25, 10, 0);
	saver_run(o, 2);
	save(o, 10, 150);
	is(o, SPACE_LOW, 1, 2); /* 20 and 25 */
	said(o, "1 more checkpoint of 100 B fits in /ckpt (150 B free), and 2 are due: it is full "
		"at iteration 30");
	save(o, 25, 0);
	is(o, SPACE_ENOUGH, 0, 0);
}

/* Without an end a few must fit. */
static void a_run_without_an_end(void **state)
{
	struct saver *o = *state;

	saver_steps(o, MO_NONE, 0, 0);
	saver_run(o, 2);
	save(o, 10, 300);
	is(o, SPACE_ENOUGH, 3, MO_NONE);
	save(o, 20, 299);
	is(o, SPACE_LOW, 2, MO_NONE);
	said(o, "2 more checkpoints of 100 B fit in /ckpt (299 B free)");
	save(o, 30, 350); /* enough, and too little to say so: others write there */
	save(o, 40, 250);
	assert_int_equal(world_events(&o->w, SPACE), 1);
	save(o, 50, 450);
	save(o, 60, 250);
	assert_int_equal(world_events(&o->w, SPACE), 2);
}

static void nothing_is_known(void **state)
{
	struct saver *o = *state;

	saver_steps(o, 100, 10, 0);
	saver_run(o, 2);
	save(o, 10, MO_NONE); /* an agent of before */
	is(o, SPACE_UNKNOWN, 0, 9);
	save(o, 20, INT64_MAX);
	is(o, SPACE_ENOUGH, INT64_MAX / 100, 8);
	save(o, 30, -5); /* a node that lies */
	is(o, SPACE_FULL, 0, 7);
}

#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_run_that_will_not_fit_is_told_at_its_first_save),
		T(what_fits_is_told_to_nobody),
		T(keep_needs_room_for_one_more),
		T(as_large_as_a_number),
		T(the_last_save_needs_none_behind_it),
		T(a_run_without_an_end),
		T(nothing_is_known),
	};

	return cmocka_run_group_tests_name("dcore/space", tests, NULL, NULL);
}
