/* The turn: takes the inputs that wait (input.h), has the core decide, stores, and then answers. */
#pragma once
#include "daemon/manager.h"

void turn_run(struct manager *m);
/* Sets the pulse timer: a turn comes at least this often. */
void turn_pulse(struct manager *m);
