/* engine.prepare: what a node's preparation cost, from a note of its step. */
#pragma once
#include "daemon/core/state/state.h"

void prepared_add(struct job *j, struct step *st, const struct note *n);
