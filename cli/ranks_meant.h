/* Which ranks of a job a word means. */
#pragma once
#include "cli/cli.h"
#include "lib/base/idset.h"

/* "3", "0-7,12", or places in the mesh, "pp=3,tp=0", for which the job's ranks are asked. 0, or an
 * exit status after its line was printed; then *ret is empty. */
int ranks_meant(struct cli *cli, const char *job, const char *word, struct mo_idset *ret);
