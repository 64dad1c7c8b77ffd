/* Any bytes as a recipe: read or refused with at least one and at most 20 errors, each with a text;
 * what is read writes itself back and reads as the same recipe. A first byte 1 makes the rest an
 * engine file, 2 splits at a NUL into a recipe and a --set. ROOMS: recipe model base */
#include <stdlib.h>
#include <string.h>

#include "lib/recipe/argv.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/recipe_file.h"

static void check_errors(int result, const struct recipe_errors *e)
{
	if ((result < 0) != (e->n > 0) || e->n > 20)
		abort();
	for (size_t i = 0; i < e->n; i++)
		if (!e->items[i].text || e->items[i].line < 0 ||
		    (i && e->items[i].line < e->items[i - 1].line))
			abort();
}

static void read_recipe(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets,
			struct recipe *ret, int *ret_result)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	char **warnings = NULL, **words = NULL;
	size_t n_warnings = 0, n_words = 0;
	struct engine engine;

	mo_desc_init(&recipe_desc, ret);
	mo_desc_init(&engine_desc, &engine);
	*ret_result =
		recipe_parse(text, n, sets, n_sets, ret, &engine, &warnings, &n_warnings, &errors);
	check_errors(*ret_result, &errors);
	if (*ret_result == 0) {
		engine_argv(&engine, ret, &words, &n_words);
		engine_resume_argv(&engine, ret, 5, &words, &n_words);
	}
	for (size_t i = 0; i < n_words; i++)
		free(words[i]);
	for (size_t i = 0; i < n_warnings; i++)
		free(warnings[i]);
	free(words);
	free(warnings);
	mo_desc_done(&engine_desc, &engine);
}

static void recipe(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct recipe a, b;
	int result, again;

	read_recipe(text, n, sets, n_sets, &a, &result);
	_cleanup_(mo_freep) char *applied = recipe_apply_sets(text, n, sets, n_sets, &errors);
	if (result == 0 && !applied)
		abort();
	if (applied && result == 0) {
		read_recipe(applied, strlen(applied), NULL, 0, &b, &again);
		if (again < 0 || !mo_desc_equal(&recipe_desc, &a, &b))
			abort();
		mo_desc_done(&recipe_desc, &b);
	}
	mo_desc_done(&recipe_desc, &a);
}

static void engine_file(const char *text, size_t n)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	check_errors(engine_parse(text, n, &e, &errors), &errors);
	mo_desc_done(&engine_desc, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* keeps NULs out of the way of the sets; recipes get the raw bytes */
	_cleanup_(mo_freep) char *text = mo_strndup((const char *)data, size);
	const char *nul = size > 1 ? memchr(data + 1, 0, size - 1) : NULL;

	if (size && data[0] == 1)
		engine_file((const char *)data + 1, size - 1);
	else if (size && data[0] == 2 && nul) {
		size_t head = (size_t)(nul - (const char *)data - 1);
		_cleanup_(mo_freep) char *set = mo_strndup(nul + 1, size - head - 2);
		char *equals = strchr(set, '=');
		struct recipe_set s = { set, equals ? equals + 1 : set };

		if (equals && equals != set) {
			*equals = 0;
			recipe(text + 1, head, &s, 1);
		}
	} else
		recipe((const char *)data, size, NULL, 0);
	return 0;
}
