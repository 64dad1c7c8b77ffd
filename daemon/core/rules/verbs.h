/* Verbs of people about jobs; see verbs.c. */
#pragma once

struct turn;

/* IN_SUBMIT */
void job_submit(struct turn *t);
/* trigger: V_CANCEL, V_PAUSE, V_RESUME, V_RESTART of transitions.h. */
void job_verb(struct turn *t, int trigger);
