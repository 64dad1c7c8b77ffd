/* debug bundle: what a report of a bug needs of a job, in one file. */
#pragma once
#include "cli/cli.h"

/* file NULL: ID-bundle.tar. The exit status, after its line was printed. */
int bundle_write(struct cli *cli, const char *job, const char *file);
