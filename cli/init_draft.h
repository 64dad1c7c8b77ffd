/* What init fills into a draft; see init_draft.c. */
#pragma once
#include "cli/init_state.h"

int init_fill(struct init *i);
