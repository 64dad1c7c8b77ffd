/* Values of a recipe that are more than a scalar; see key_readers.c. */
#pragma once
#include "lib/recipe/schema.h"

void key_read_format(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_args(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_moe(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_mla(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_parallelism(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_features(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_env(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_loss_spike(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_preflight(struct reader *r, const struct key *k, const struct ynode *v);
/* A text is for the shell, a list is a program and its words. */
void key_read_prepare(struct reader *r, const struct key *k, const struct ynode *v);
/* Its rules are the engine's: read when that is known (recipe.c). */
void key_read_metrics_lines(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_layout(struct reader *r, const struct key *k, const struct ynode *v);
