/* Later checks of the binding of a rank's threads (threads.c). */
#pragma once
#include "agent/stepd/stepd.h"

void threads_begin(struct stepd *s, struct rank *r); /* it was started and read back */
void threads_tick(struct stepd *s);
