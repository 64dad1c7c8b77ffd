/* Following one job: `moectl watch`, and `submit --watch`. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_watch;
/* Follows the job until it ended: 0 completed, CLI_JOB_FAILED, CLI_JOB_CANCELLED, or the exit
 * status of an error. --json: one Job document per change. */
int watch_job(struct cli *cli, const char *id);
