/* What the core asks for once its records are stored: see effects.c. */
#pragma once
#include "daemon/input.h"

void effect_do(struct manager *m, struct input *in, const struct effect *fx);
