/* What stands behind a $ (shell.h). Private to shell.c and shell_expand.c. */
#pragma once
#include "lib/recipe/shell.h"

/* p: at the $ or `. Returns what is behind it. */
const char *shell_expand(struct shell_word *u, const char *p);
void shell_expand_home(struct shell_word *u);
