/* What the controller's core decides in the life of one job: the same story for every recipe, so
 * that a recipe that changes nothing in it changes no decision. */
#pragma once
#include "daemon/core/state/state.h"

/* Events and what the agents were sent, as text; the caller frees. spec: of 8 GPUs, with
 * checkpoints in /c. */
char *story_of(const struct submit *spec);
