/* Is a word a date or a time of YAML 1.1, by the pattern of PyYAML's resolver; see config_date.c.
 * */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/recipe/config_value.h"

/* Digits at s, at least `least` and at most `most` of them; 0 when there are others. */
size_t config_some_digits(const char *s, size_t least, size_t most);
int config_yaml_date(const char *text, struct config_place place, struct config_value **ret,
		     struct mo_error *err);
