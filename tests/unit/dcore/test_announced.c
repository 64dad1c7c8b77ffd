/* What a job's ledger of checkpoints takes in from announcements. */
#include "tests/unit/dcore/saver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/view/why_view.h"
#include "lib/model/limits.h"
#include "daemon/core/view/why.h"

static size_t events_of(const struct saver *o, const char *type, int64_t *ret_iteration)
{
	const struct state *s = core_state(o->w.core);
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		if (mo_streq(s->events[i].type, type)) {
			n++;
			if (sscanf(s->events[i].data, "{\"iteration\":%" SCNd64, ret_iteration) !=
			    1)
				*ret_iteration = MO_NONE;
		}
	return n;
}

static void an_announcement_without_a_number_is_ignored(void **state)
{
	struct saver *o = *state;
	struct note *n;

	saver_run(o, 2);
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = MO_NONE;
	n->path = mo_strdup("/ckpt/last");
	saver_run(o, 1);
	assert_int_equal(saver_job(o)->n_checkpoints, 0);
	assert_false(world_event_seen(&o->w, "checkpoint.saved"));
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = MO_NONE;
	n->path = mo_strdup("/ckpt/step7");
	saver_run(o, 1);
	assert_non_null(checkpoint_find(saver_job(o), 7));
	assert_true(world_event_seen(&o->w, "checkpoint.saved"));
}

static void an_announcement_elsewhere_is_refused(void **state)
{
	static const char *const paths[] = { "/etc/passwd",    "relative/5", "5",
					     "/ckpt/../etc/5", "/ckpt2/5",   "" };
	struct saver *o = *state;
	int64_t iteration;

	saver_run(o, 2);
	world_iteration(&o->w, 0, o->id, 3);
	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->path = mo_strdup(paths[i]);
	saver_run(o, 1);
	assert_int_equal(saver_job(o)->n_checkpoints, 0);
	assert_int_equal(events_of(o, "checkpoint.saved", &iteration), 0);
	assert_int_equal(events_of(o, "checkpoint.refused", &iteration), 1);
	world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->path = mo_strdup("//ckpt/./3/");
	saver_run(o, 1);
	assert_int_equal(saver_state(o, 3), CKPT_COMPLETE);
	assert_int_equal(events_of(o, "checkpoint.refused", &iteration), 1);
}

/* What the node answers when it is asked whether a save went to checkpoint.dir by another name. */
static void node_says(struct saver *o, const char *place, const char *alias)
{
	o->w.verify = true;
	mo_str_set(&o->w.scan.place, place);
	mo_str_set(&o->w.scan.alias, alias);
}

/* An engine whose layout is known says where it saves: elsewhere is the end of the job at its first
 * save, with both paths, and no attempt follows. Reported when the save begins. */
static void a_save_elsewhere_ends_the_job(void **state)
{
	static const char *const paths[] = { "/other/x", "/ckpt2", "/ckpt/checkpoints",
					     "/other/5" };
	struct saver *o = *state;
	struct why_view why;
	int64_t iteration;

	for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
		struct note *n;

		saver_strict(o);
		node_says(o, "other", NULL);
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		n = world_note(&o->w, 0, o->id, NOTE_SAVING);
		n->iteration = 5;
		n->path = mo_strdup(paths[i]);
		saver_run(o, 1);
		assert_int_equal(events_of(o, "checkpoint.elsewhere", &iteration), 1);
		assert_int_equal(saver_job(o)->state, JOB_RUNNING);
		n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
		n->iteration = 5;
		n->path = mo_strdup(paths[i]);
		saver_run(o, 20);
		assert_int_equal(saver_job(o)->state, JOB_FAILED);
		assert_int_equal(saver_job(o)->attempt, 1);
		assert_int_equal(saver_job(o)->n_checkpoints, 0);
		assert_int_equal(events_of(o, "checkpoint.elsewhere", &iteration), 1);
		assert_int_equal(events_of(o, "checkpoint.saved", &iteration), 0);
		assert_false(world_event_seen(&o->w, "checkpoint.torn"));
		assert_non_null(strstr(saver_job(o)->reason, paths[i]));
		assert_non_null(strstr(saver_job(o)->reason, "not to checkpoint.dir /ckpt:"));
		mo_desc_init(&why_view_desc, &why);
		job_why(core_state(o->w.core), saver_job(o), o->w.now, &why);
		assert_string_equal(why.reasons[why.n_reasons - 1].code, "saves-elsewhere");
		mo_desc_done(&why_view_desc, &why);
	}
}

/* torchtitan and DeepSpeed say where a save goes when it begins, and no end of it: the first is
 * over when they go on, or end. What says ends is waited for, as it may save beside its
 * iterations. */
static void a_save_elsewhere_without_an_end(void **state)
{
	static const char *const paths[] = { "/other/x", "/other/5", "/ckpt/titan" };
	struct saver *o = *state;
	int64_t iteration;

	for (size_t i = 0; i < 3 * ELEMENTSOF(paths); i++) {
		struct note *n;
		size_t how = i / ELEMENTSOF(paths);

		if (how == 2)
			saver_tells_end(o);
		else
			saver_strict(o);
		node_says(o, "other", NULL);
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		n = world_note(&o->w, 0, o->id, NOTE_SAVING);
		n->iteration = 5;
		n->path = mo_strdup(paths[i % ELEMENTSOF(paths)]);
		saver_run(o, 10);
		assert_int_equal(saver_job(o)->state, JOB_RUNNING);
		assert_int_equal(events_of(o, "checkpoint.elsewhere", &iteration), 1);
		if (how == 1)
			world_exit(&o->w, 0, o->id, 0, 0, 0);
		else
			world_iteration(&o->w, 0, o->id, 6);
		saver_run(o, 20);
		if (how == 2) {
			assert_int_equal(saver_job(o)->state, JOB_RUNNING);
			continue;
		}
		assert_int_equal(saver_job(o)->state, JOB_FAILED);
		assert_int_equal(saver_job(o)->attempt, 1);
		assert_non_null(strstr(saver_job(o)->reason, paths[i % ELEMENTSOF(paths)]));
		assert_non_null(strstr(saver_job(o)->reason, "not to checkpoint.dir /ckpt:"));
	}
}

static void saving(struct saver *o, int64_t iteration, const char *path)
{
	struct note *n = world_note(&o->w, 0, o->id, NOTE_SAVING);

	n->iteration = iteration;
	n->path = mo_strdup(path);
}

/* A script that keeps one more save on a disk of the node, before that in checkpoint.dir or behind
 * it. */
static void a_save_beside_ends_nothing(void **state)
{
	static const char *const paths[][2] = { { "/local/5", "/ckpt/5" },
						{ "/ckpt/5", "/local/5" } };
	struct saver *o = *state;

	for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
		saver_strict(o);
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		saving(o, 5, paths[i][0]);
		saving(o, 5, paths[i][1]);
		saver_run(o, 1);
		world_iteration(&o->w, 0, o->id, 7);
		saving(o, 7, "/local/7");
		world_iteration(&o->w, 0, o->id, 8);
		saver_run(o, 20);
		assert_int_equal(saver_job(o)->state, JOB_RUNNING);
	}
}

static void saved(struct saver *o, int64_t iteration, const char *path)
{
	struct note *n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);

	n->iteration = iteration;
	n->path = mo_strdup(path);
}

/* The text of a path is no proof: without the node's word that these are two places nothing
 * ends. */
static void only_the_nodes_word_ends_it(void **state)
{
	static const char *const places[] = { NULL, "same", "no such word" };
	struct saver *o = *state;
	int64_t iteration;

	for (size_t i = 0; i < 2 * ELEMENTSOF(places) + 2; i++) {
		bool ends = i % 2; /* it says that saves end, or not */
		size_t k = i / 2;

		if (ends)
			saver_tells_end(o);
		else
			saver_strict(o);
		node_says(o, k < ELEMENTSOF(places) ? places[k] : "other", NULL);
		saver_run(o, 2);
		if (k == ELEMENTSOF(places))
			o->w.scan.error = mo_strdup("the helper timed out");
		world_iteration(&o->w, 0, o->id, 5);
		saving(o, 5, "/mnt/run");
		if (ends)
			saved(o, 5, "/mnt/run");
		world_iteration(&o->w, 0, o->id, 6);
		saver_run(o, 20);
		assert_int_equal(events_of(o, "checkpoint.elsewhere", &iteration), 1);
		assert_int_equal(saver_job(o)->state, JOB_RUNNING);
		assert_null(saver_job(o)->saves.elsewhere);
		assert_null(saver_job(o)->saves.doubt);
		assert_true(!saver_job(o)->saves.refused == (k == 1));
	}
}

/* checkpoint.dir by another name: the save is taken, and those behind it without a question. */
static void another_name_is_learned(void **state)
{
	struct saver *o = *state;
	int64_t asked;

	for (int ends = 0; ends < 2; ends++) {
		if (ends)
			saver_tells_end(o);
		else
			saver_strict(o);
		node_says(o, "same", "/mnt/run");
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		saving(o, 5, "/mnt/run/iter_0000005");
		if (ends)
			saved(o, 5, "/mnt/run/iter_0000005");
		world_found(&o->w, 5, true);
		world_iteration(&o->w, 0, o->id, 6);
		saver_run(o, 5);
		assert_int_equal(saver_state(o, 5), CKPT_VERIFIED);
		asked = o->w.n_verified;
		/* where it is, before anything is read */
		assert_true(o->w.verified[0].marker);
		assert_false(o->w.verified[asked - 1].marker); /* then what it is */
		saving(o, 7, "/mnt/run/iter_0000007");
		saver_run(o, 1);
		assert_int_equal(saver_state(o, 7), CKPT_SAVING);
		saved(o, 7, "/mnt/run/iter_0000007");
		world_found(&o->w, 7, true);
		saver_run(o, 5);
		assert_int_equal(saver_state(o, 7), CKPT_VERIFIED);
		assert_int_equal(o->w.n_verified, asked + 1);
		assert_int_equal(saver_job(o)->state, JOB_RUNNING);
	}
}

/* The last save of a job that ends at once behind it: it ends well only when the node was asked. */
static void the_end_waits_for_the_word(void **state)
{
	static const struct {
		const char *place;
		int state;
	} cases[] = {
		{ "other", JOB_FAILED },
		{ NULL, JOB_COMPLETED },
		{ "same", JOB_COMPLETED },
	};
	struct saver *o = *state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		saver_tells_end(o);
		node_says(o, cases[i].place, "/mnt/run");
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		saved(o, 5, "/mnt/run");
		world_exit(&o->w, 0, o->id, 0, 0, 0);
		world_exit(&o->w, 0, o->id, 1, 0, 0);
		saver_run(o, 20);
		assert_int_equal(saver_job(o)->state, cases[i].state);
	}
}

/* It names the directory of all, however it is spelled, or one checkpoint in it. */
static void a_save_in_its_place_is_taken(void **state)
{
	static const char *const paths[] = { "/ckpt", "/x/../ckpt/", "/ckpt/iter_0000005", NULL };
	struct saver *o = *state;
	int64_t iteration;

	for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
		struct note *n;

		saver_strict(o);
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
		n->iteration = 5;
		n->path = mo_strdup(paths[i]);
		saver_run(o, 1);
		assert_int_equal(saver_state(o, 5), CKPT_COMPLETE);
		assert_int_equal(saver_job(o)->checkpoints[0].path != NULL, i == 2);
		assert_int_equal(events_of(o, "checkpoint.saved", &iteration), 1);
		assert_int_equal(events_of(o, "checkpoint.elsewhere", &iteration), 0);
	}
}

/* checkpoint.dir is or contains a link, and what trains prints where that leads: it is the same
 * directory. */
static void a_save_in_its_real_place_is_taken(void **state)
{
	static const struct {
		const char *path;
		bool elsewhere;
	} cases[] = {
		{ "/data/run", false },
		{ "/data/x/../run/", false },
		{ "/data/run/iter_0000005", false },
		{ "/data/run2", true },
		{ "/data", true },
	};
	struct saver *o = *state;
	int64_t iteration;

	for (size_t i = 0; i < 3 * ELEMENTSOF(cases); i++) {
		size_t k = i / 3;
		struct note *n;

		/* a script's own word */
		if (i % 3 == 0)
			saver_again(o, -1, 0);
		else if (i % 3 == 1)
			saver_tells_end(o);
		else
			saver_strict(o);
		mo_str_set(&o->w.scan.real, "/data/run");
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		saving(o, 5, cases[k].path);
		n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
		n->iteration = 5;
		n->path = mo_strdup(cases[k].path);
		saver_run(o, 1);
		assert_int_equal(events_of(o, "checkpoint.saved", &iteration), !cases[k].elsewhere);
		if (cases[k].elsewhere)
			continue;
		world_iteration(&o->w, 0, o->id, 6);
		saver_run(o, 5);
		assert_int_equal(saver_job(o)->state, JOB_RUNNING);
		assert_int_equal(saver_state(o, 5), CKPT_COMPLETE);
		assert_int_equal(events_of(o, "checkpoint.elsewhere", &iteration), 0);
		assert_int_equal(events_of(o, "checkpoint.refused", &iteration), 0);
		if (k == 2)
			assert_string_equal(saver_job(o)->checkpoints[0].path,
					    "/ckpt/iter_0000005");
		else
			assert_true(i % 3 == 0 || !saver_job(o)->checkpoints[0].path);
	}
}

/* Ranks name what they see, orders what the node has. */
static void a_save_in_an_image(void **state)
{
	struct saver *o = *state;
	const struct toy *t = &o->w.toys[0];
	int64_t iteration;
	bool launched = false;

	saver_in_image(o);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_RUNNING);
	for (size_t i = 0; i < t->n_log; i++) {
		assert_true(t->log[i].kind != CMD_SCAN || mo_streq(t->log[i].dir, "/ckpt"));
		launched |=
			t->log[i].launch && mo_streq(t->log[i].launch->checkpoint_dir, "/work/c");
	}
	assert_true(launched);
	world_iteration(&o->w, 0, o->id, 5);
	saved(o, 5, "/work/c/iter_0000005");
	saver_run(o, 1);
	assert_string_equal(saver_job(o)->checkpoints[0].path, "/ckpt/iter_0000005");
	assert_int_equal(saver_state(o, 5), CKPT_COMPLETE);
	saved(o, 6, "/work/cc/6");
	saver_run(o, 1);
	assert_int_equal(saver_job(o)->n_checkpoints, 1);
	assert_int_equal(events_of(o, "checkpoint.refused", &iteration), 1);
}

/* What a node says that the directory is, and is none: it does not make every path one of ours. */
static void a_real_place_of_a_nodes_making(void **state)
{
	static const char *const places[] = { "/", "", "data", "//" };
	struct saver *o = *state;
	int64_t iteration;

	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		saver_again(o, -1, 0);
		mo_str_set(&o->w.scan.real, places[i]);
		saver_run(o, 2);
		world_iteration(&o->w, 0, o->id, 5);
		saved(o, 5, "/etc/5");
		saved(o, 5, "data/5");
		saver_run(o, 1);
		assert_int_equal(saver_job(o)->n_checkpoints, 0);
		assert_int_equal(events_of(o, "checkpoint.refused", &iteration), 1);
	}
}

/* Announced without a number between two iterations that arrive together. */
static void event_and_ledger_name_one_iteration(void **state)
{
	struct saver *o = *state;
	int64_t iteration = MO_NONE;

	saver_run(o, 2);
	world_iteration(&o->w, 0, o->id, 3);
	world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->path = mo_strdup("/ckpt/last");
	world_iteration(&o->w, 0, o->id, 4);
	saver_run(o, 1);
	assert_int_equal(saver_job(o)->n_checkpoints, 1);
	assert_int_equal(saver_job(o)->checkpoints[0].iteration, 3);
	assert_int_equal(events_of(o, "checkpoint.saved", &iteration), 1);
	assert_int_equal(iteration, 3);
}

static void a_path_without_iteration(void **state)
{
	struct saver *o = *state;
	struct note *n;

	saver_run(o, 2);
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->path = mo_strdup("/ckpt/step-0042/");
	saver_run(o, 1);
	assert_int_equal(state_newest_checkpoint(saver_job(o)), 42);
}

static void the_ledger_is_bounded(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	for (int64_t i = 0; i < MO_CHECKPOINTS_MAX + 10; i++)
		world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->iteration = i;
	saver_run(o, 1);
	assert_int_equal(saver_job(o)->n_checkpoints, MO_CHECKPOINTS_MAX);
	assert_int_equal(state_newest_checkpoint(saver_job(o)), MO_CHECKPOINTS_MAX + 9);
	assert_int_equal(saver_job(o)->checkpoints[0].iteration, 10);
}

/* A rank may announce as much as it likes: the others' events stay in the ring, and the ledger has
 * all. */
static void announcements_do_not_fill_the_ring(void **state)
{
	struct saver *o = *state;
	int64_t last;

	saver_run(o, 2);
	size_t before = core_state(o->w.core)->n_events;
	for (int64_t i = 0; i < 2 * MO_EVENTS_OF_USER_MAX; i++)
		world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->iteration = i;
	saver_run(o, 1);
	assert_in_range(core_state(o->w.core)->n_events - before, MO_EVENTS_OF_USER_MAX,
			MO_EVENTS_OF_USER_MAX + 5);
	assert_int_equal(saver_job(o)->n_checkpoints, 2 * MO_EVENTS_OF_USER_MAX);
	const struct state *s = core_state(o->w.core);
	assert_non_null(strstr(s->events[s->n_events - 1].message, "left out for a minute"));
	/* the next minute has its own */
	size_t reported = events_of(o, "checkpoint.saved", &last);
	saver_run(o, 61);
	saver_save(o, 5000);
	saver_run(o, 1);
	assert_int_equal(events_of(o, "checkpoint.saved", &last), reported + 1);
	assert_int_equal(last, 5000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)
	const struct CMUnitTest tests[] = {
		T(an_announcement_without_a_number_is_ignored),
		T(an_announcement_elsewhere_is_refused),
		T(a_save_elsewhere_ends_the_job),
		T(a_save_elsewhere_without_an_end),
		T(only_the_nodes_word_ends_it),
		T(another_name_is_learned),
		T(the_end_waits_for_the_word),
		T(a_save_beside_ends_nothing),
		T(a_save_in_its_place_is_taken),
		T(a_save_in_its_real_place_is_taken),
		T(a_real_place_of_a_nodes_making),
		T(a_save_in_an_image),
		T(event_and_ledger_name_one_iteration),
		T(a_path_without_iteration),
		T(the_ledger_is_bounded),
		T(announcements_do_not_fill_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
