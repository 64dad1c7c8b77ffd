/* Which engine a launch starts, by the templates of the engine files; see draft_kind.c. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/launch_line.h"

/* The engine whose command the program is, by its template: its kind (borrowed from `kinds`)
 * and how many words of the program are its own, the entry among them at *ret_entry (-1 =
 * none). NULL: none of them; then it is kind torch, or command for a module. */
const char *draft_kind(const struct launch_line *l, char *const *kinds, size_t n_kinds,
		       size_t *ret_used, int *ret_entry);
