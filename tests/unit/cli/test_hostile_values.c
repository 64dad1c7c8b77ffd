/* Every key of a recipe with the values that nobody means (null, nothing, the ends of its range and
 * of int64, other kinds), alone and beside other keys, from the text to the launch document:
 * refused with a reason, or planned and written out whole. Driven by the table of keys, so that a
 * new key is tried without a word here. UBSan sees overflows (make san); a division by zero ends
 * any build. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "lib/recipe/keys.h"
#include "tests/fuzz/whole.h"

/* clang-format off */
static const char *const values[] = {
	"null", "~", "\"\"", "0", "-0", "-1", "1", "9223372036854775807", "-9223372036854775808",
	"9223372036854775808", "1.0e300", "-0.5", "true", "none", "auto", "[]", "{}", "[null]",
	"[0]", "{a: null}", "0s", "106751991d", "9223372036854775807s",
};
/* clang-format on */

static const struct key *table(size_t *ret_n)
{
	const struct reader r = recipe_reader(NULL, NULL);

	*ret_n = r.n_keys;
	return r.keys;
}

#define N_VALUES (ELEMENTSOF(values) + 2)

/* The values of the list, and the ends of the key's own range. */
static char *value_of(const struct key *k, size_t i)
{
	if (i < ELEMENTSOF(values))
		return mo_strdup(values[i]);
	return mo_printf("%lld", (long long)(i == ELEMENTSOF(values) ? k->min : k->max));
}

static void each_key_alone(void **state)
{
	size_t n_keys, n_tried = 0;
	const struct key *keys = table(&n_keys);

	for (size_t b = 0; b < ELEMENTSOF(bases); b++)
		for (size_t k = 0; k < n_keys; k++)
			for (size_t i = 0; i < N_VALUES; i++, n_tried++) {
				_cleanup_(mo_freep) char *v = value_of(&keys[k], i);
				const struct recipe_set set = { (char *)keys[k].path, v, NULL };

				whole(bases[b], strlen(bases[b]), &set, 1);
			}
	assert_true(n_tried > 5000);
}

/* Numbers meet in products: the largest of every pair of them. */
static void each_pair_of_large_numbers(void **state)
{
	size_t n_keys;
	const struct key *keys = table(&n_keys);

	for (size_t a = 0; a < n_keys; a++)
		for (size_t b = a + 1; b < n_keys; b++) {
			if (keys[a].type != KEY_INT || keys[b].type != KEY_INT)
				continue;
			_cleanup_(mo_freep) char *x = value_of(&keys[a], N_VALUES - 1);
			_cleanup_(mo_freep) char *y = value_of(&keys[b], N_VALUES - 1);
			const struct recipe_set sets[] = {
				{ (char *)keys[a].path, x, NULL },
				{ (char *)keys[b].path, y, NULL },
			};

			whole(bases[1], strlen(bases[1]), sets, 2);
		}
}

static void a_required_null_is_missing(void **state)
{
	size_t n_keys;
	const struct key *keys = table(&n_keys);

	for (size_t k = 0; k < n_keys; k++) {
		_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
		_cleanup_(mo_freep) char *missing = mo_printf("missing key '%s'", keys[k].path);
		const struct recipe_set set = { (char *)keys[k].path, (char *)"null", NULL };
		const char *base = bases[mo_starts_with(keys[k].path, "model.mla.") ? 2 : 1];
		struct recipe r;

		if (!keys[k].required)
			continue;
		mo_desc_init(&recipe_desc, &r);
		assert_int_equal(recipe_parse(base, strlen(base), &set, 1, &r, NULL, NULL, NULL,
					      &errors),
				 -EINVAL);
		if (!strstr(errors.items[0].text, missing))
			fail_msg("%s: null: %s", keys[k].path, errors.items[0].text);
		mo_desc_done(&recipe_desc, &r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_required_null_is_missing),
		cmocka_unit_test(each_key_alone),
		cmocka_unit_test(each_pair_of_large_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
