/* fabric check: which node or link of some makes collectives slow, or stand. */
#pragma once
#include "cli/cli.h"

/* argv: what follows `fabric check`. Returns the exit status. */
int fabric_check(struct cli *cli, int argc, char **argv);
