/* A draft as a recipe's text; see draft_text.c. */
#pragma once
#include "lib/recipe/draft.h"

/* The recipe as YAML behind the comments (lines without "# "). Caller frees. */
char *draft_text(const struct draft *d, char *const *comments, size_t n_comments);
