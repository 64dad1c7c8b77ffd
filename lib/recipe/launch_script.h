/* Scripts that start a training. */
#pragma once
#include "lib/recipe/launch_line.h"

/* Words as a program gets them. -EINVAL with err: no launch is in them, -ENOENT: a script that
 * they name is not there. */
int launch_line_words(char *const *words, size_t n, const struct launch_world *world,
		      struct launch_line *ret, struct mo_error *err);
/* The text of a shell. Conditions, loops and functions are followed where their values are known;
 * the first command that is a launch counts, one of several processes before one of one. In
 * `lost` are words whose variable nobody set, commands that a recipe does not run, and what hangs
 * on a condition that only a running shell could tell. */
int launch_line_script(const char *text, const struct launch_world *world, struct launch_line *ret,
		       struct mo_error *err);
