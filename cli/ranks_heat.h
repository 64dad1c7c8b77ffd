/* `moectl ranks JOB --heat`: all ranks of a job as a picture. */
#pragma once
#include "cli/cli.h"

/* Asks and prints it. metric: NULL = what they do; a name that the controller does not know is
 * refused by it. An exit status, its line printed. */
int ranks_heat(struct cli *cli, const char *job, const char *metric);
