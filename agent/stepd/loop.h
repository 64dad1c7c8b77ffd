/* The turn of moe-stepd (loop.c): what every source has queued is decided, carried out, written
 * and announced. */
#pragma once
#include "agent/stepd/stepd.h"

int stepd_open_loop(struct stepd *s, struct mo_error *err);
void stepd_turn(struct stepd *s);
bool stepd_is_over(const struct stepd *s);            /* SX_DONE, and the last note is on disk */
int stepd_run(struct stepd *s, struct mo_error *err); /* turns until then */
