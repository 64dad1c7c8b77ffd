/* Any bytes as a file of failure signatures: refused with a place, or usable.
 * ROOMS: recipe dcore plan wire model base */
#include <stdlib.h>

#include "daemon/core/rules/classify.h"
#include "lib/recipe/failures_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct failure_rules rules;
	struct recipe_errors errors = { 0 };
	struct classifier *c = NULL;

	mo_desc_init(&failure_rules_desc, &rules);
	if (failures_parse((const char *)data, n, &rules, &errors) == 0) {
		if (classifier_new(&rules, &c, NULL) < 0)
			abort();
		classifier_free(c);
	} else if (!errors.n) {
		abort();
	}
	recipe_errors_done(&errors);
	mo_desc_done(&failure_rules_desc, &rules);
	return 0;
}
