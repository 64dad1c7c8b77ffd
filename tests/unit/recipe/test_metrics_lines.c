/* metrics.lines of a recipe: rules before those of the engine, and every way to write them wrong,
 * with its place. */
#include <string.h>
#include <time.h>

#include "lib/base/buf.h"
#include "tests/unit/recipe/read.h"

#define HEAD \
	"recipe: 1\nname: a\nengine: {kind: torch, entry: /x/train.py}\ncluster: {gpus: " \
	"1}\nmetrics:\n"

static void they_come_before_the_engines(void **state)
{
	_cleanup_(parsed_done) struct parsed none =
		parse("recipe: 1\nname: a\nengine: {kind: torch, entry: /x/train.py}\ncluster: "
		      "{gpus: 1}\n",
		      NULL);
	_cleanup_(parsed_done) struct parsed p =
		parse(HEAD "  lines:\n  - {kind: sample, pattern: 'it (?<iteration>\\d+) nll "
			   "(?<loss>\\S+)'}\n"
			   "  - {kind: sample, begin: 'E(?<iteration>\\d+)', fields: {nll: loss}, "
			   "separator: ' '}\n"
			   "  - {kind: sample, pattern: 'nll (?<loss>\\S+)'}\n  - {kind: saved, "
			   "pattern: 'wrote (?<path>\\S+)'}\n",
		      NULL);
	_cleanup_(mo_freep) char *said = errors_text(&p.errors);

	if (p.errors.n)
		fail_msg("%s", said);
	assert_int_equal(p.engine.n_rules, none.engine.n_rules + 4);
	assert_string_equal(p.engine.rules[0].pattern, "it (?<iteration>\\d+) nll (?<loss>\\S+)");
	assert_string_equal(p.engine.rules[1].begin, "E(?<iteration>\\d+)");
	assert_true(mo_desc_equal(&line_rule_desc, &p.engine.rules[4], &none.engine.rules[0]));
}

static const struct {
	const char *lines, *says;
} bad[] = {
	{ "  lines: {kind: sample}\n", "6:10 metrics.lines: expected a list" },
	{ "  lines: [a]\n", "6:11 metrics.lines: expected {kind, pattern}" },
	{ "  lines: [{kind: sample, pattern: 'it (\\d+'}]\n",
	  "6:35 pattern: missing closing parenthesis" },
	{ "  lines: [{kind: sample, pattern: 'it \\d+'}]\n",
	  "6:35 pattern: it needs a group (?<iteration>...)" },
	{ "  lines: [{kind: sample, pattern: '(?<iteration>\\d+) (?<lost>\\S+)'}]\n",
	  "6:35 pattern: unknown group 'lost'" },
	{ "  lines: [{kind: sample, pattern: '(?<loss>(a+)+)$'}]\n",
	  "6:35 pattern: it backtracks without end" },
	{ "  lines: [{kind: sample, pattern: '(?<iteration>1)', of_steps: true}]\n",
	  "6:64 lines: of_steps needs a group (?<steps>...)" },
	{ "  lines: [{kind: sampel, pattern: '(?<iteration>1)'}]\n",
	  "6:18 kind: expected one of sample" },
	{ "  lines: [{kind: sample, pattren: a}]\n", "6:26 unknown key 'pattren'" },
	{ "  line: []\n", "6:3 unknown key 'metrics.line'" },
};

static void how_they_are_refused(void **state)
{
	size_t n_wrong = 0;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_freep) char *text = mo_printf(HEAD "%s", bad[i].lines);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (p.errors.n < 1 || !strstr(said, bad[i].says)) {
			print_message("%s expected %s, got %s\n", bad[i].lines, bad[i].says, said);
			n_wrong++;
		}
	}
	assert_int_equal(n_wrong, 0);
}

static void not_more_than_a_line_can_be_held_against(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, HEAD "  lines:\n");
	for (int i = 0; i < 33; i++)
		mo_buf_str(&b, "  - {kind: sample, pattern: '(?<iteration>1)'}\n");
	_cleanup_(parsed_done) struct parsed p = parse(b.data, NULL);
	_cleanup_(mo_freep) char *said = errors_text(&p.errors);

	assert_true(mo_starts_with(said, "7:3 metrics.lines: more than 32 rules"));
}

/* CPU time that n patterns take which end, but only after very many steps for each character. */
static clock_t cost(int n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	static int serial; /* none is one that was tried before */

	mo_buf_str(&b, HEAD "  lines:\n");
	for (int i = 0; i < n; i++)
		mo_buf_printf(&b,
			      "  - {kind: sample, pattern: "
			      "'(?:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ123456789)?"
			      "(?<iteration>\\d?)\\w{0,9}\\w{0,9}\\w{0,9}%d!'}\n",
			      serial++);
	clock_t begun = clock();
	_cleanup_(parsed_done) struct parsed p = parse(b.data, NULL);

	assert_int_equal(p.errors.n, 0);
	return clock() - begun;
}

/* The controller tries a user's patterns in its own loop: how long that takes is no matter of how
 * many he gives. */
static void many_slow_ones_take_no_longer(void **state)
{
	bool good = false;

	for (int tries = 0; tries < 3 && !good; tries++) {
		clock_t few = cost(2);

		good = cost(32) < 6 * few;
	}
	assert_true(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(they_come_before_the_engines),
					    cmocka_unit_test(how_they_are_refused),
					    cmocka_unit_test(
						    not_more_than_a_line_can_be_held_against),
					    cmocka_unit_test(many_slow_ones_take_no_longer) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
