/* config/health/klog.yaml as it is shipped, and files that are wrong. */
#include "tests/unit/recipe/read.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/klog_file.h"

static void shipped(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct klog_rules rules;

	mo_desc_init(&klog_rules_desc, &rules);
	if (klog_rules_load(&rules, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(rules.n_rules > 20);
	for (size_t i = 0; i < rules.n_rules; i++)
		assert_true(rules.rules[i].n_match > 0 && rules.rules[i].what &&
			    rules.rules[i].next);
	assert_string_equal(rules.rules[0].id, "ras-fatal");
	assert_int_equal(rules.rules[0].severity, KLOG_CRIT);
	mo_desc_done(&klog_rules_desc, &rules);
}

static void refused(const char *text, const char *complaint)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct klog_rules rules;

	mo_desc_init(&klog_rules_desc, &rules);
	assert_true(klog_rules_parse(text, strlen(text), &rules, &errors) < 0);
	mo_desc_done(&klog_rules_desc, &rules);
	_cleanup_(mo_freep) char *all = errors_text(&errors);
	if (!strstr(all, complaint))
		fail_msg("'%s' is not in: %s", complaint, all);
}

#define DRIVERS "drivers: [{name: d, begins: ['d: ']}]\n"
#define RULE(id, pattern) \
	"  - {id: " id ", severity: warn, from: [d], match: ['" pattern "'], what: w, next: n}\n"

static void wrong_files(void **state)
{
	refused(DRIVERS "rules:\n" RULE("a", "("), "3:");
	refused(DRIVERS "rules:\n" RULE("a", "x(y"), "pattern 'x(y'");
	refused(DRIVERS "rules:\n" RULE("a", "x") RULE("a", "y"), "there are two with the id 'a'");
	refused(DRIVERS
		"rules:\n  - {id: a, severity: bad, from: [d], match: [x], what: w, next: n}\n",
		"severity");
	refused(DRIVERS "rules:\n  - {id: a, severity: warn, from: [d], what: w, next: n}\n",
		"match");
	refused(DRIVERS "rules: 5\n", "expected a list");
	refused("- a\n", "expected a mapping");
	refused("", "rules");
	refused(DRIVERS "rules:\n  - a\n", "expected {id");
	refused("rules:\n" RULE("a", "x"), "drivers");
	refused("drivers: 5\nrules:\n" RULE("a", "x"), "drivers: expected a list");
	refused("drivers: [5]\nrules:\n" RULE("a", "x"), "expected {name, begins}");
	refused("drivers: [{name: d, begins: ['(']}]\nrules:\n" RULE("a", "x"), "pattern '('");
	refused(DRIVERS "rules:\n  - {id: a, severity: warn, match: [x], what: w, next: n}\n",
		"from");
	refused(DRIVERS
		"rules:\n  - {id: a, severity: warn, from: [amd], match: [x], what: w, next: n}\n",
		"'amd' is none of drivers:");
}

static void too_many(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, DRIVERS "rules:\n");
	for (int i = 0; i <= KLOG_RULES_MAX; i++)
		mo_buf_printf(&b,
			      "  - {id: r%d, severity: warn, from: [d], match: [x], what: w, next: "
			      "n}\n",
			      i);
	refused(b.data, "more than the 40");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(shipped),
					    cmocka_unit_test(wrong_files),
					    cmocka_unit_test(too_many) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
