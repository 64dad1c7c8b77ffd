/* Sizes next to a wished one that would do, for messages; see rules_near.c. */
#pragma once
#include "lib/recipe/rules_say.h"

/* "6 or 8": the divisors of a number next to the one that was wished. Searched up to the root,
 * because both numbers come from the recipe and a controller that counts to 2^30 serves nobody
 * meanwhile. */
char *near_divisors(int64_t wished, int64_t of);
/* "8 or 16": the same of multiples of a unit. Caller frees both. */
char *near_multiples(int64_t wished, int64_t unit);
int64_t common_divisor(int64_t a, int64_t b);
/* What tensor parallelism must divide of the model; 0 = anything will do. */
int64_t near_widths(const struct recipe_model *m);
