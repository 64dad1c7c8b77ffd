/* Measured runs that calibrate later plans (struct anchor): which of them are of one stack. Pure
 * readers, called by update/measured.c and by the shell's plans. */
#pragma once
#include "daemon/core/state/state.h"

/* Software, GPU, precision and model are the same; versions may differ. */
bool anchor_same_stack(const struct anchor *a, const struct anchor *b);
/* The newest anchor of a's stack is of the same version: an upgrade retires what was
 * measured before. */
bool anchor_current(const struct state *s, const struct anchor *a);
