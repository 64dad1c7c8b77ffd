/* Sizes next to a wished one that would do, for messages. */
#include "lib/recipe/rules_near.h"

#include <stdio.h>

#include "lib/base/desc.h"

#define FAR 64 /* a divisor that many times the wished number is no advice */

char *near_divisors(int64_t wished, int64_t of)
{
	int64_t below = 1, above = 0;

	for (int64_t small = 1; of > 0 && small <= of / small; small++) {
		const int64_t pair[] = { small, of / small };

		for (size_t i = 0; of % small == 0 && i < ELEMENTSOF(pair); i++) {
			if (pair[i] <= wished)
				below = MO_MAX(below, pair[i]);
			if (pair[i] >= wished && pair[i] / FAR <= wished)
				above = above ? MO_MIN(above, pair[i]) : pair[i];
		}
	}
	return above > below ? mo_printf("%lld or %lld", LL(below), LL(above))
			     : mo_printf("%lld", LL(below));
}

char *near_multiples(int64_t wished, int64_t unit)
{
	int64_t below = unit > 0 ? wished / unit * unit : 0, above;

	if (below > 0 && !__builtin_add_overflow(below, unit, &above))
		return mo_printf("%lld or %lld", LL(below), LL(above));
	return mo_printf("%lld", LL(MO_MAX(unit, 1)));
}

int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int64_t near_widths(const struct recipe_model *m)
{
	int64_t of = m ? m->heads : 0;

	if (m && !m->mla && m->kv_heads != MO_NONE)
		of = common_divisor(of, m->kv_heads);
	return m && m->ffn != MO_NONE ? common_divisor(of, m->ffn) : of;
}
