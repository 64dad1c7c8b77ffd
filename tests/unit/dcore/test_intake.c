/* daemon/core/rules/intake.h: how much of one message is taken at once; what is left is sent again
 * and taken later. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/intake.h"
#include "lib/base/buf.h"
#include "lib/base/desc_fit.h"
#include "lib/model/limits.h"

static char *text_of(size_t n)
{
	char *s = mo_alloc(n + 1);

	memset(s, 'x', n);
	return s;
}

static void add_notes(struct step_report *r, int64_t first, size_t n, size_t bytes)
{
	for (size_t i = 0; i < n; i++) {
		struct note *note = MO_ADD(r, notes, &note_desc);

		note->n = first + (int64_t)i;
		note->text = bytes ? text_of(bytes) : NULL;
	}
}

static void what_honest_agents_send_is_taken_whole(void **state)
{
	struct agent_sync *s = mo_desc_new(&agent_sync_desc);
	struct scan_result *scan = MO_ADD(s, scans, &scan_result_desc);

	add_notes(MO_ADD(s, steps, &step_report_desc), 1, MO_NOTES_PER_SYNC, 200);
	for (size_t i = 0; i < MO_CHECKPOINTS_MAX; i++)
		MO_ADD(scan, items, &found_checkpoint_desc)->path = text_of(500);
	intake_portion(s);
	assert_int_equal(s->steps[0].n_notes, MO_NOTES_PER_SYNC);
	assert_int_equal(s->scans[0].n_items, MO_CHECKPOINTS_MAX);
	assert_null(s->scans[0].error);
	mo_desc_free(&agent_sync_desc, s);
}

/* Each message begins with another step, so what is left of one comes first in another; what is
 * taken of a step is its oldest notes, without a gap. */
static void notes_are_taken_from_the_front(void **state)
{
	struct agent_sync *s = mo_desc_new(&agent_sync_desc);
	size_t whole = 0, rounds = 0;
	int64_t through[3] = { 0 };

	for (; whole < 3; rounds++) {
		whole = 0;
		for (size_t k = 0; k < 3; k++)
			add_notes(MO_ADD(s, steps, &step_report_desc), through[k] + 1,
				  (size_t)(300 - through[k]), MO_LINE_MAX);
		intake_portion(s);
		assert_int_equal(s->n_steps, 3);
		for (size_t k = 0; k < 3; k++) {
			const struct step_report *r = &s->steps[k];

			for (size_t i = 0; i < r->n_notes; i++)
				assert_int_equal(r->notes[i].n, through[k] + 1 + (int64_t)i);
			through[k] += (int64_t)r->n_notes;
			whole += through[k] == 300;
		}
		assert_true(mo_desc_text_bytes(&agent_sync_desc, s) <= MO_PORTION_BYTES);
		mo_vec_clear(&step_report_desc, (void **)&s->steps, &s->n_steps);
		assert_true(rounds < 10); /* each brings something */
	}
	assert_true(rounds > 4);
	mo_desc_free(&agent_sync_desc, s);
}

/* The largest note there can be does not stop those behind it for ever. */
static void the_largest_note_fits(void **state)
{
	struct agent_sync *s = mo_desc_new(&agent_sync_desc);
	struct step_report *r = MO_ADD(s, steps, &step_report_desc);
	_cleanup_(mo_freep) char *line = text_of(MO_LINE_MAX);

	add_notes(r, 1, 1, MO_LINE_MAX);
	for (size_t i = 0; i < MO_TAIL_LINES; i++)
		mo_strs_add(&r->notes[0].tail, &r->notes[0].n_tail, line);
	r->notes[0].path = text_of(MO_TEXT_MAX);
	r->notes[0].cpus = text_of(MO_TEXT_MAX);
	r->notes[0].bind_note = text_of(MO_TEXT_MAX);
	intake_portion(s);
	assert_int_equal(s->steps[0].n_notes, 1);
	mo_desc_free(&agent_sync_desc, s);
}

static void scans_wait_for_each_other(void **state)
{
	struct agent_sync *s = mo_desc_new(&agent_sync_desc);

	for (size_t k = 0; k < 3; k++) {
		struct scan_result *scan = MO_ADD(s, scans, &scan_result_desc);

		scan->job = (int64_t)k + 1;
		for (size_t i = 0; i < 500; i++)
			MO_ADD(scan, items, &found_checkpoint_desc)->path =
				text_of(k == 2 ? MO_TEXT_MAX : 1000);
	}
	intake_portion(s);
	assert_int_equal(s->n_scans, 2);
	mo_vec_remove(&scan_result_desc, s->scans, &s->n_scans, 0);
	mo_vec_remove(&scan_result_desc, s->scans, &s->n_scans, 0);
	/* one that never fits is answered: its job must not wait for ever */
	struct scan_result *huge = MO_ADD(s, scans, &scan_result_desc);
	for (size_t i = 0; i < 500; i++)
		MO_ADD(huge, items, &found_checkpoint_desc)->path = text_of(MO_TEXT_MAX);
	intake_portion(s);
	assert_int_equal(s->n_scans, 1);
	assert_int_equal(s->scans[0].n_items, 0);
	assert_non_null(strstr(s->scans[0].error, "longer than 1.5 MiB"));
	mo_desc_free(&agent_sync_desc, s);
}

static void health_keeps_what_was_found(void **state)
{
	struct agent_sync *s = mo_desc_new(&agent_sync_desc);

	s->health = mo_desc_new(&node_health_desc);
	for (size_t i = 0; i < 400; i++) {
		struct check_result *c = MO_ADD(s->health, results, &check_result_desc);
		_cleanup_(mo_freep) char *line = text_of(3000);

		c->check = mo_strdup("gpu.ras_ue");
		c->text = text_of(4000);
		c->next = text_of(i % 300);
		mo_strs_add(&c->evidence, &c->n_evidence, line);
	}
	intake_portion(s);
	assert_int_equal(s->health->n_results, 400);
	assert_int_equal(s->health->results[399].n_evidence, 0);
	assert_int_equal(strlen(s->health->results[399].text), 256);
	assert_int_equal(strlen(s->health->results[255].next), 255);
	assert_int_equal(strlen(s->health->results[299].next), 256);
	assert_string_equal(s->health->results[399].check, "gpu.ras_ue");
	mo_desc_free(&agent_sync_desc, s);
}

/* One note of a step is asked for the engine's configuration; no other may bring any. */
static void configurations_of_others_are_dropped(void **state)
{
	struct agent_sync *s = mo_desc_new(&agent_sync_desc);
	struct step_report *r = MO_ADD(s, steps, &step_report_desc);
	static const struct {
		int kind;
		int64_t rank;
		bool stays;
	} notes[] = {
		{ NOTE_STARTED, 0, true },        { NOTE_STARTED, 1, false },
		{ NOTE_STARTED, MO_NONE, false }, { NOTE_SAMPLE, 0, false },
		{ NOTE_GONE, 0, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(notes); i++) {
		struct note *n = MO_ADD(r, notes, &note_desc);

		n->kind = notes[i].kind;
		n->rank = notes[i].rank;
		n->config = mo_strdup("{}");
	}
	intake_portion(s);
	assert_int_equal(r->n_notes, ELEMENTSOF(notes));
	for (size_t i = 0; i < ELEMENTSOF(notes); i++)
		assert_int_equal(r->notes[i].config != NULL, notes[i].stays);
	mo_desc_free(&agent_sync_desc, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_honest_agents_send_is_taken_whole),
		cmocka_unit_test(notes_are_taken_from_the_front),
		cmocka_unit_test(the_largest_note_fits),
		cmocka_unit_test(scans_wait_for_each_other),
		cmocka_unit_test(health_keeps_what_was_found),
		cmocka_unit_test(configurations_of_others_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
