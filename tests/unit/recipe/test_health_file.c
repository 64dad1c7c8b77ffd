/* Health checks from YAML: what they may say, and what is refused with its place. */
#include "tests/unit/unit.h"
#include <float.h>
#include <string.h>
#include "lib/recipe/health_file.h"

#define HEAD \
	"checks:\n  - {id: gpu.x, what: w, next: n, source: s, area: gpu, when: [preflight, " \
	"epilog], "

static int parse(const char *text, struct health_checks *checks, struct recipe_errors *errors)
{
	mo_desc_init(&health_checks_desc, checks);
	return health_checks_parse(text, strlen(text), checks, errors);
}

static void a_whole_check(void **state)
{
	struct health_checks all;
	struct recipe_errors errors = { 0 };

	assert_int_equal(parse(HEAD "reading: r, measure: share, of: c, warn_above: 0.5, "
				    "crit_above: 5e9, consecutive: 3, action: cordon, window: 2h, "
				    "needs: nic, absent: unknown}\n"
				    "  - {id: p, what: w, next: n, source: s, area: host, when: "
				    "[failure], argv: [a, '1'], requires: [b], match: 'x "
				    "([0-9]+)', crit_below: -3, deadline: 5s, enabled: false}\n",
			       &all, &errors),
			 0);
	const struct health_check *c = all.checks;
	assert_int_equal(all.n_checks, 2);
	assert_int_equal(c->when, WHEN_PREFLIGHT | WHEN_EPILOG);
	assert_int_equal(c->measure, MEASURE_SHARE);
	assert_true(c->warn_above == 0.5 && c->crit_above == 5e9 && c->warn_below == MO_NONE_F &&
		    c->crit_below == MO_NONE_F);
	assert_int_equal(c->window_us, 7200000000LL);
	assert_int_equal(c->needs, NEEDS_NIC);
	assert_int_equal(c->absent, CHECK_UNKNOWN);
	assert_true(c->enabled && c->action == ACTION_CORDON && c->consecutive == 3);
	assert_false(c[1].enabled);
	assert_int_equal(c[1].deadline_us, 5000000);
	assert_int_equal(c[1].n_argv, 2);
	assert_int_equal(c[1].n_requires, 1);
	mo_desc_done(&health_checks_desc, &all);
	recipe_errors_done(&errors);
}

static void refused(void **state)
{
	static const struct {
		const char *text, *why;
		int64_t line;
	} bad[] = {
		{ "", "checks", 1 },
		{ "checks: 5\n", "expected a list", 1 },
		{ "checks:\n  - x\n", "expected {id", 2 },
		{ "checks:\n  - {id: a}\n", "missing key 'what'", 2 },
		{ HEAD "reading: r}\n", "has no limit", 2 },
		{ HEAD "reading: r, warn_abov: 3}\n", "unknown key 'warn_abov'", 2 },
		{ HEAD "reading: r, warn_above: 3, crit_above: 2}\n",
		  "crit_above is below warn_above", 2 },
		{ HEAD "reading: r, warn_below: 3, crit_below: 4}\n",
		  "crit_below is above warn_below", 2 },
		{ HEAD "reading: r, measure: less_of, warn_above: 3}\n", "give of", 2 },
		{ HEAD "reading: r, of: q, warn_above: 3}\n", "of has no meaning", 2 },
		{ HEAD "reading: r, measure: text, of: q, expect: [a]}\n",
		  "either of (a reading) or expect", 2 },
		{ HEAD "reading: r, warn_above: 3, rises: true, measure: per_hour}\n",
		  "rises belongs to measure value or less_of", 2 },
		{ HEAD "reading: r, warn_below: 3, rises: true}\n", "with limits above", 2 },
		{ HEAD "reading: r.*, warn_above: 3, rises: true}\n", "of one reading", 2 },
		{ HEAD "reading: r, warn_above: 3, history: warn}\n",
		  "history belongs to measure since_boot", 2 },
		{ HEAD "reading: r, warn_above: 3, measure: since_boot, history: unknown}\n",
		  "history", 2 },
		{ HEAD "reading: r.*, measure: per_hour, warn_above: 3}\n",
		  "can only be measured as value", 2 },
		{ HEAD "reading: r, measure: text, warn_above: 3}\n", "a limit needs a number", 2 },
		{ HEAD "reading: r, measure: same, otherwise: ok}\n", "never finds anything", 2 },
		{ HEAD "reading: r, measure: same, expect: [a]}\n",
		  "expect belongs to measure text", 2 },
		{ HEAD "warn_above: 3}\n", "either a reading or argv", 2 },
		{ HEAD "reading: r, argv: [a], warn_above: 3}\n", "either a reading or argv", 2 },
		{ HEAD "argv: [a], match: 'a (b)', warn_above: 3}\n", "match belongs to area host",
		  2 },
		{ HEAD "argv: ['{data:health/none.py}']}\n", "health/none.py is not installed", 2 },
		{ "checks:\n  - {id: a, what: w, next: n, source: s, area: nic, when: [failure], "
		  "argv: [x]}\n",
		  "its area is host, or gpu", 2 },
		{ "checks:\n  - {id: a, what: w, next: n, source: s, area: gpu, when: [doubt], "
		  "reading: r, warn_above: 3}\n",
		  "doubt belongs to argv", 2 },
		{ HEAD "reading: r, match: 'a (b)', warn_above: 3}\n", "match belongs to argv", 2 },
		{ HEAD "reading: r, warn_above: x}\n", "expected a number", 2 },
		{ HEAD "reading: r, warn_above: 3, consecutive: 0}\n", "consecutive", 2 },
		{ HEAD "reading: r, warn_above: 3, settle: 5s}\n", "settle belongs to", 2 },
		{ HEAD "reading: r, warn_above: 3, settle: 50s}\n", "at most 30s", 2 },
		{ HEAD "reading: r, warn_above: 3, window: 5s}\n", "window", 2 },
		{ HEAD "reading: r, warn_above: 3, action: reboot}\n", "action", 2 },
		{ HEAD "reading: r, warn_above: 3}\n  - {id: gpu.x, what: w, next: n, source: s, "
		       "area: gpu, when: [failure], reading: r, warn_above: 1}\n",
		  "two with the id 'gpu.x'", 3 },
		{ "checks:\n  - {id: a, what: w, next: n, source: s, area: gpu, when: [sometimes], "
		  "reading: r, warn_above: 3}\n",
		  "got 'sometimes'", 2 },
		{ "checks:\n  - {id: a, what: w, next: n, source: s, area: gpu, when: [], reading: "
		  "r, warn_above: 3}\n",
		  "the list is empty", 2 },
		{ "checks:\n  - {id: a, what: w, next: n, source: s, area: host, when: [failure], "
		  "argv: [x], match: '(', crit_below: 3}\n",
		  "at its character", 2 },
		{ "checks:\n  - {id: a, what: w, next: n, source: s, area: host, when: [failure], "
		  "argv: [x], match: 'no group', crit_below: 3}\n",
		  "needs one group", 2 },
	};
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		struct health_checks all;
		struct recipe_errors errors = { 0 };
		bool named = false;
		assert_int_equal(parse(bad[i].text, &all, &errors), -22);
		for (size_t k = 0; k < errors.n; k++)
			named = named ||
				(strstr(errors.items[k].text, bad[i].why) &&
				 errors.items[k].line == bad[i].line && errors.items[k].column > 0);
		if (!named)
			fail_msg("%s: expected '%s' in line %d, got %lld:%lld %s", bad[i].text,
				 bad[i].why, (int)bad[i].line, (long long)errors.items[0].line,
				 (long long)errors.items[0].column, errors.items[0].text);
		mo_desc_done(&health_checks_desc, &all);
		recipe_errors_done(&errors);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_whole_check),
					    cmocka_unit_test(refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
