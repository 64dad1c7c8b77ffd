/* Patterns that take for ever. Private to lib/recipe. */
#pragma once
#include "lib/base/util.h"

/* Does the pattern try every way to divide a text of equal characters, as (a+)+$ does? Looked
 * for with what it begins with, and each character that stands in it, 64 times. A pattern that
 * does not compile does not. */
bool pattern_runs_away(const char *pattern);
/* Between these the patterns are a user's: all of them together are tried for some 40 ms at
 * most. What is not found then meets the limit of its lines. */
void pattern_budget_begin(void);
void pattern_budget_end(void);
