/* What a recipe is made from: read, and its words found. */
#pragma once
#include "cli/init_state.h"

/* A file or a line; the words of a line, or its text, that of `script` (NULL = a line). 0 or an
 * exit status (printed). */
int init_from_path(struct init *i, const char *from);
int init_from_launch(struct init *i, const char *text, const char *script, char *const *words,
		     size_t n);
/* Primus loads its presets from the tree that its program lies in, and its experiment from where
 * it is started. A recipe has one directory for both, which is the tree. */
void init_tree(struct init *i);
/* Whether the script that is started takes the word that its launcher added for each rank. */
void init_local_rank(struct init *i);
