/* What stands before a launcher and only runs it; see launch_wrapper.c. */
#pragma once
#include "lib/recipe/launch_line.h"

struct wrapper;

const char *launch_base_name(const char *word);
const struct wrapper *launch_wrapper_of(const char *word);
/* How many words stand before the program: assignments, nohup and its like, srun with its options;
 * *l gets what they say. */
size_t launch_line_head(struct launch_line *l, char *const *words, size_t n);
