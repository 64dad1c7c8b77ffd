/* Which slots are free, of nodes that take work; what is given away of them while placing; see
 * slots.c. */
#pragma once
#include "daemon/core/rules/place.h"

/* Why it gets no work as a node; NULL = fit. */
const char *node_unfit(const struct state *s, const struct node *n);
/* Why this step keeps its node from new work; NULL = it does not. */
const char *step_uncertain(const struct state *s, const struct step *st);
void slots_init(const struct state *s, struct slots *ret);
/* As if that job had no places: what would be free for it if it moved. */
void slots_init_without(const struct state *s, const struct job *j, struct slots *ret);
/* Places are searched for this job from now on: its spares are free for it. */
void slots_for(struct slots *slots, const struct state *s, const struct job *j);
void slots_done(struct slots *slots);
void slots_take(struct slots *slots, const struct state *s, const struct place *places,
		size_t n_places);
