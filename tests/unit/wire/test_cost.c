/* lib/wire/cost.c: texts that would become seconds and gigabytes are refused early; the largest
 * that honest agents send are not. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/model/limits.h"
#include "lib/model/message.h"
#include "lib/wire/cost.h"
#include "lib/wire/encode.h"

static void fill(struct mo_buf *b, const char *before, const char *unit, size_t bytes,
		 const char *after)
{
	mo_buf_reset(b);
	for (mo_buf_str(b, before); b->len < bytes;)
		mo_buf_str(b, unit);
	mo_buf_str(b, after);
}

static void what_grows_is_refused(void **state)
{
	static const struct {
		const char *before, *unit, *after;
		size_t seen;
	} cases[] = {
		{ "{\"a\":1", ",\"a\":1", "}", 10000 },
		{ "{\"steps\":[", "{},", "{}]}", 400000 },
		{ "{\"steps\":[", "[],", "[]]}", 400000 },
		{ "{\"steps\":[", "{\"a\":1},", "{}]}", 300000 },
		{ "[", "\"\",", "\"\"]", 3000000 },
		{ "[", "1,", "1]", 3000000 },
		{ "{\"a\":\"", "\\n", "\"}", 13000000 },
		{ "{\"a\":\"", "\\\"", "", 13000000 }, /* no end either */
		{ "{\"a\":\"", "\xc3\xa9", "\"}", 13000000 },
		{ "[", "[", "", 400000 },
	};
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		int64_t at = 0;

		fill(&b, cases[i].before, cases[i].unit, 12 << 20, cases[i].after);
		assert_int_equal(wire_affordable(b.data, b.len, &err), -E2BIG);
		assert_int_equal(sscanf(strstr(err.text, "at byte"), "at byte %ld", &at), 1);
		assert_in_range(at, 1, cases[i].seen);
	}
}

/* As many notes as one message has, with last lines of 4 MB, and as many steps as a node has. */
static void an_honest_agent_is_read(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct agent_sync *sync = mo_desc_new(&agent_sync_desc);

	for (size_t i = 0; i < MO_STEPS_PER_NODE_MAX; i++) {
		struct step_report *s = MO_ADD(sync, steps, &step_report_desc);

		s->job = (int64_t)i + 1;
		s->attempt = 1;
		for (size_t k = 0; k < (i ? 0 : MO_NOTES_PER_SYNC); k++) {
			struct note *n = MO_ADD(s, notes, &note_desc);

			n->rank = (int64_t)k;
			for (size_t line = 0; line < MO_TAIL_LINES; line++)
				mo_strs_add(&n->tail, &n->n_tail,
					    "a line of a hundred characters, as a program that "
					    "dies may write it, with \"quotes\" and a\ttab in it");
		}
	}
	wire_encode(&agent_sync_desc, sync, &b);
	assert_true(b.len > 4000000);
	assert_int_equal(wire_affordable(b.data, b.len, NULL), 0);
	mo_desc_free(&agent_sync_desc, sync);
}

static void a_long_text_is_read(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	/* inside a string they are nothing */
	fill(&b, "{\"text\":\"", "{[,:]} ", 8 << 20, "\"}");
	assert_int_equal(wire_affordable(b.data, b.len, NULL), 0);
	/* a piece of a log, whatever is written there */
	fill(&b, "{\"text\":\"", "\xe2\x82\xac", 1 << 20, "\"}");
	assert_int_equal(wire_affordable(b.data, b.len, NULL), 0);
	assert_int_equal(wire_affordable("", 0, NULL), 0);
	assert_int_equal(wire_affordable("\"\\", 2, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_grows_is_refused),
		cmocka_unit_test(an_honest_agent_is_read),
		cmocka_unit_test(a_long_text_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
