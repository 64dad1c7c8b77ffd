/* What is known of the room for a job's checkpoints, and of how long a save takes, before the job
 * is taken: a sentence each for its warnings. A pure reader, called by the shell at a submit and
 * at /v1/validate. Caller frees; NULL: nothing is known, or nothing is to be warned of. */
#pragma once
#include "daemon/core/state/state.h"

char *forecast_room(const struct state *s, const struct submit *spec);
char *forecast_save(const struct state *s, const struct submit *spec);
