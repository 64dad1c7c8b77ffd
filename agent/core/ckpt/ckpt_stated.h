/* What the files of a checkpoint tell of themselves; see ckpt_stated.c. */
#pragma once
#include "agent/core/ckpt/ckpt_inner.h"

char *ckpt_iteration_damage(const char *words, const void *pickle, size_t n, int64_t iteration);
/* The iteration that the pickle of such a file says, -1 = none. */
int64_t ckpt_state_iteration(const struct ckpt_layout *layout, const void *pickle, size_t n);
/* Whether this file's pickle may say how many files its grid has and of which variants; what it
 * says goes into e->parts and e->due. */
bool ckpt_tells_parts(const struct ckpt_rules *r, const char *name, size_t *ret_grid);
void ckpt_parts_stated(const struct ckpt_rules *r, size_t grid, const void *pickle, size_t n,
		       struct ckpt_entry *e);
/* The same for what other files say of a grid (told_by): whether this is one, and what its
 * pickle says. */
bool ckpt_tells_of_grid(const struct ckpt_rules *r, size_t grid, const char *name);
void ckpt_grid_stated(const struct ckpt_rules *r, size_t grid, const void *pickle, size_t n,
		      struct ckpt_entry *e);
