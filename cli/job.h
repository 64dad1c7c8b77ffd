/* Following one job: shared by `watch` and `submit --watch`. */
#pragma once
#include "cli/client.h"

/* Follows the job until it ended: 0 completed, CLI_JOB_FAILED, CLI_JOB_CANCELLED, or the exit status of an error. --json: one Job document per change. */
int watch_job(struct cli *cli, const char *id);
/* Waits ms; true when SIGINT or SIGTERM came meanwhile (watch_signals() must have been called once). */
void watch_signals(void);
bool watch_wait(int64_t ms);
