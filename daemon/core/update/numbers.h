/* What the losses say of the model, as samples come: daemon/core/state/numbers.h. */
#pragma once
#include "daemon/core/state/numbers.h"

/* at: index of a sample that is new, or knows more than before. */
void numbers_sample(struct job *j, size_t at);
/* Tainted or not, by the loss of the attempt at hand. attempt: who saved it, as in a checkpoint. */
void numbers_mark(const struct job *j, struct checkpoint *c, int64_t attempt);
/* Before its first attempt: what it found was saved by another job, which knows of it. */
void numbers_inherit(const struct state *s, struct job *j);
/* How often the job went back from where its loss is bad now: it is past a place when a good
 * checkpoint lies behind it. */
int64_t numbers_rollbacks(const struct job *j);
/* A numerical fault became an incident: the job goes back. */
void numbers_went_back(struct job *j);
/* A person dealt with it. */
void numbers_forgive(struct job *j);
