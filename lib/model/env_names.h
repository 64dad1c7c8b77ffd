/* Names in a rank's environment that only the launcher may set: lib/recipe refuses them in a
 * recipe, the agent never lets a layer override them. */
#pragma once
#include "lib/base/util.h"

/* RANK, WORLD_SIZE, ..., everything beginning with MOE_, the GPU visibility variables. */
bool mo_env_launch_name(const char *name);
/* Those of them that choose which GPUs a process sees. */
bool mo_env_visibility(const char *name);
