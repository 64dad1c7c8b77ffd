/* Environments that a script enters; see launch_envs.c. */
#pragma once
#include "lib/recipe/launch_run.h"

/* conda activate NAME, source activate NAME: where conda.sh is known the interpreter is, too. */
bool launch_take_conda(struct run *r, const struct shell_command *c);
/* What sets a shell up for programs: module load, and conda's own beginning. */
bool launch_take_modules(struct run *r, const struct shell_command *c);
