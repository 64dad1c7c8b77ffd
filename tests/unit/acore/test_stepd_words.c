/* What the supervisor's shell used to decide by itself: the answers of moe-config and of
 * engine.prepare, which events a rank's words are, how often a stream is read. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/core/stepd/config_words.h"
#include "agent/core/stepd/fact_events.h"
#include "agent/core/stepd/hook_words.h"
#include "agent/core/stepd/pace.h"
#include "lib/model/limits.h"

static void texts_free(char **all)
{
	for (size_t i = 0; all[i]; i++)
		free(all[i]);
	free(all);
}

static void test_environment(void **state)
{
	const struct env_item items[] = {
		{ .name = (char *)"A", .value = (char *)"1" },
		{ .name = (char *)"SECRET", .file = (char *)"/home/ann/key" },
		{ .name = (char *)"UNSET" },
		{ .name = (char *)"LD_LIBRARY_PATH", .value = (char *)"/opt" },
	};
	char **env = config_environment(items, ELEMENTSOF(items), "ann", "/own", NULL);

	assert_string_equal(env[0], "A=1");
	assert_null(strstr(env[1], "/home")); /* neither the value nor where it lies */
	assert_string_equal(env[2], "LD_LIBRARY_PATH=/own:/opt");
	assert_string_equal(env[3], "MOE_SUBMITTED_BY=ann");
	assert_null(env[4]);
	texts_free(env);
}

static void test_refusal(void **state)
{
	struct launch l;
	char *why;

	mo_desc_init(&launch_desc, &l);
	assert_null(config_refusal(&l, "n1", 2, "bad")); /* nothing was asked that could refuse */
	l.config = mo_strdup("experiment");
	assert_null(config_refusal(&l, "n1", 0, NULL));
	assert_null(config_refusal(&l, "n1", -1, NULL)); /* killed: the ranks start without */
	assert_null(config_refusal(&l, "n1", 3, "slow"));
	why = config_refusal(&l, "n1", 2, "line 3: bad");
	assert_string_equal(why, "the experiment on n1: line 3: bad");
	free(why);
	mo_desc_done(&launch_desc, &l);
}

static void test_unstored(void **state)
{
	const struct mo_buf none = { 0 }, some = { .data = (char *)"{}", .len = 2 };

	assert_null(config_unstored(0, &some, true, 2, NULL));
	assert_non_null(config_unstored(0, &none, false, 0, NULL));
	assert_non_null(config_unstored(0, &some, false, 0, NULL));
	assert_non_null(config_unstored(0, &some, true, MO_CONFIG_BYTES_MAX + 1, NULL));
	assert_string_equal(config_unstored(3, &none, false, 0, "no memory"), "no memory");
	assert_string_not_equal(config_unstored(2, &some, true, 2, "no memory"), "no memory");
}

static void test_hook(void **state)
{
	struct hook_end e = { .node = "n1", .program = "/bin/fetch" };
	struct note n;
	char *why;

	assert_null(hook_problem(&e));
	e.code = 3;
	why = hook_problem(&e);
	assert_string_equal(why, "engine.prepare on n1 ended with exit code 3");
	assert_int_equal(hook_code(&e), 3);
	free(why);
	e.signal = 9;
	why = hook_problem(&e);
	assert_string_equal(why, "engine.prepare on n1 was ended by signal 9");
	assert_int_equal(hook_code(&e), 0);
	free(why);
	e = (struct hook_end){ .node = "n1",
			       .program = "/bin/fetch",
			       .step = "execute",
			       .error = ENOENT,
			       .code = 127 };
	why = hook_problem(&e);
	assert_non_null(strstr(why, "could not execute (/bin/fetch)"));
	assert_int_equal(hook_code(&e), ENOENT);
	free(why);
	e.found = "cannot execute /bin/fetch in the image: not there";
	why = hook_problem(&e);
	assert_string_equal(why, "engine.prepare on n1 cannot execute /bin/fetch in the image: not "
				 "there");
	free(why);
	mo_desc_init(&note_desc, &n);
	n.text = mo_strdup("it failed");
	for (int i = 0; i < 7; i++) {
		const char line[] = { (char)('a' + i), 0 };
		mo_strs_add(&n.tail, &n.n_tail, line);
	}
	hook_says_last(&n);
	assert_string_equal(n.text, "it failed; its last lines: c | d | e | f | g");
	mo_desc_done(&note_desc, &n);
}

static void test_facts(void **state)
{
	struct line_fact f = { .kind = LINE_ENDED, .phase = PHASE_NONE };
	int events[FACT_EVENTS_MAX];
	struct note n;

	assert_int_equal(fact_events_of_line(&f, events), 0);
	f.kind = LINE_SAVED;
	assert_int_equal(fact_events_of_line(&f, events), 1);
	assert_int_equal(events[0], SE_CHECKPOINT);
	f = (struct line_fact){ .kind = LINE_SAMPLE, .phase = PHASE_NONE, .checkpoint = true };
	assert_int_equal(fact_events_of_datagram(&f, events), 2);
	assert_int_equal(events[0], SE_SAMPLE); /* its iteration is known before it */
	assert_int_equal(events[1], SE_CHECKPOINT);
	f.ready = true;
	assert_int_equal(fact_events_of_datagram(&f, events), 3);
	assert_int_equal(events[0], SE_READY);
	fact_note(SE_SAMPLE, &f, 4, 2, 1234567, &n);
	assert_int_equal(n.rank, 4);
	assert_int_equal(n.sample->attempt, 2);
	assert_int_equal(n.sample->time, 1234000);
	mo_desc_done(&note_desc, &n);
}

static void test_pace(void **state)
{
	struct pace p = { 0 };

	for (int i = 0; i < 100; i++) /* seldom enough */
		assert_false(pace_woken(&p, 1000000 + i * 10000));
	p = (struct pace){ 0 };
	assert_false(pace_woken(&p, 1000000));
	assert_false(pace_woken(&p, 1000001));
	assert_false(pace_woken(&p, 1000002));
	assert_true(pace_woken(&p, 1000003));
	assert_true(p.batched);
	for (int i = 0; i < 19; i++)
		assert_false(pace_ticked(&p, false));
	assert_false(pace_ticked(&p, true));
	for (int i = 0; i < 19; i++)
		assert_false(pace_ticked(&p, false));
	assert_true(pace_ticked(&p, false));
	assert_false(p.batched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment), cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_unstored),    cmocka_unit_test(test_hook),
		cmocka_unit_test(test_facts),       cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests_name("stepd_words", tests, NULL, NULL);
}
