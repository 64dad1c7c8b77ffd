/* The files that variables are read from, before anything is started with them (files.c). */
#pragma once
#include "agent/stepd/prepare.h"

/* Reads p->files, which stays where it is until then() is called: at once when there are none.
 * It is not called when the step was ordered to end meanwhile. */
void files_read(struct stepd *s, struct prepared *p, void (*then)(struct stepd *s));
/* True when it was their reader that died. */
bool files_reaped(struct stepd *s, const siginfo_t *si);
void files_tick(struct stepd *s); /* its deadline */
