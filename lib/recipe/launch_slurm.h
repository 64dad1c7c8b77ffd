/* What a script says to a batch system; see launch_slurm.c. */
#pragma once
#include "lib/recipe/launch_run.h"

void launch_read_sbatch(struct run *r, const char *text);
/* Lines for other batch systems: their words are named, and that they are one is said. */
bool launch_read_directives(struct run *r, const char *text);
/* A batch system starts a script where it was submitted, and tells it where that is. */
void launch_set_submitted(struct run *r, const char *text);
/* What Slurm tells the script of its own #SBATCH lines. */
void launch_set_slurm(struct run *r);
