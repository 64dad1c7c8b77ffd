/* Launches by accelerate, whose own configuration says more. Private to lib/recipe. */
#pragma once
#include "lib/recipe/launch_run.h"

/* A word of accelerate becomes the variable that its launcher makes of it, once its file is read.
 * False: it makes none. */
bool launch_accelerate_word(struct launch_line *l, const char *word, const char *value);
void launch_accelerate_type(struct launch_line *l, char *const *words, size_t n);
/* What accelerate's own configuration says of the best launch. */
void launch_accelerate_config(struct run *r);
