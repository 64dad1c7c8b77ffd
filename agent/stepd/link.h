/* The agents that listen (link.c): JSON lines over the step's socket. */
#pragma once
#include "agent/stepd/stepd.h"

int link_open(struct stepd *s, struct mo_error *err);
/* Tells the agents what this turn brought, drops dead connections. */
void link_turn(struct stepd *s);
void link_tick(struct stepd *s);
