/* A script that is read (launch_script.c) and the launch that was found in it (launch_found.c).
 * Private to them. */
#pragma once
#include "lib/recipe/launch_blocks.h"

struct run {
	const struct launch_world *world;
	struct shell shell;
	struct blocks blocks;
	struct shell_words before; /* of the commands that lead to this text: srun, X=1 */
	struct shell_words sbatch;
	struct shell_words left,
		behind;            /* commands that are not run; before the launch, after it */
	struct shell_words others; /* launches that are not the one */
	struct shell_words plain;  /* those of them that are one process: they prepare something */
	struct shell_words activated, modules; /* environments of Python, of `module load` */
	struct shell_words directives;         /* lines for a batch system that is not Slurm */
	struct launch_line best;
	int score;           /* of the best one; 0 = none */
	char *called;        /* the words of the best one, to know it again */
	char *python;        /* of an environment that was activated */
	char *conda;         /* its directory, by its conda.sh */
	char *missing;       /* a script that is not there */
	struct mo_error why; /* no launch: of the last command, or of one in a container */
	bool contained;
	struct shell_words texts;    /* that were gone into */
	const char *text, *end, *at; /* the outermost text, and the command of it that is read */
	size_t commands;
	int depth;
	bool ended;
};
