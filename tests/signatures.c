/* See signatures.h. */
#include "tests/signatures.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/rules/classify.h"
#include "lib/recipe/failures_file.h"

const struct classifier *test_signatures(void)
{
	static struct classifier *made;
	struct failure_rules rules;
	struct mo_error err = { 0 };

	if (made)
		return made;
	mo_desc_init(&failure_rules_desc, &rules);
	if (failures_load(false, &rules, &err) < 0 || classifier_new(&rules, &made, &err) < 0) {
		fprintf(stderr, "%s\n", mo_error_text(&err, -1));
		abort();
	}
	mo_desc_done(&failure_rules_desc, &rules);
	mo_error_done(&err);
	return made;
}
