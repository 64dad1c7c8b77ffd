/* The job's ports (ports.c), held until the ranks run. */
#pragma once
#include "agent/stepd/stepd.h"

int ports_hold(struct stepd *s, struct mo_error *err);
void ports_release(struct stepd *s); /* the ranks run: theirs to listen on */
void ports_forget(struct stepd *s);  /* the step is gone: any step's */
