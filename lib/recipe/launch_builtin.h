/* Commands of a shell that change what later ones mean; see launch_builtin.c. */
#pragma once
#include "lib/recipe/launch_run.h"

/* $1 and what follows: words of w from `at` on. */
void launch_set_words(struct shell *s, const struct shell_words *w, size_t at);
/* True: it is one, and all that it does is done. */
bool launch_take_builtin(struct run *r, const struct shell_command *c);
