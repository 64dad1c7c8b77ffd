/* Recipes from the text to the launch document (whole.h). A first byte 0 to 2 names one of its
 * recipes, and lines "key=value" change it; other bytes are a recipe as they are.
 * ROOMS: recipe dcore acore plan wire model base */
#include "lib/base/parse.h"
#include "tests/fuzz/whole.h"

#define SETS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(mo_freep) char *text = mo_strndup((const char *)data + 1, n ? n - 1 : 0);
	struct recipe_set sets[SETS_MAX];
	size_t n_sets = 0;

	if (!n || data[0] >= ELEMENTSOF(bases)) {
		whole((const char *)data, n, NULL, 0);
		return 0;
	}
	for (char *s = text, *line; n_sets < SETS_MAX && (line = strsep(&s, "\n"));) {
		char *equals = strchr(line, '=');

		if (!equals || equals == line)
			continue;
		*equals = 0;
		sets[n_sets++] = (struct recipe_set){ line, equals + 1, NULL };
	}
	whole(bases[data[0]], strlen(bases[data[0]]), sets, n_sets);
	return 0;
}
