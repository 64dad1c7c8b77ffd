/* A job that became slow, and the rank that makes it so; see straggler.c. */
#pragma once
#include "daemon/core/state/pace.h"

struct turn;

/* True when the judgement changed. */
bool straggler_act(struct turn *t, int64_t id);
/* It is to be judged again: what beats tell changes nothing that is stored. */
bool straggler_due(const struct turn *t, const struct job *j);
/* What a record of notes changed. slow: pace_slow() before it. */
void pace_tell(struct turn *t, int64_t id, bool slow);
