/* Where on this node an attempt of a job has its files. Callers free. */
#pragma once
#include "agent/options.h"

#define STEP_GONE "gone." /* before the name of a step directory that is being removed */

/* its step directory: lock, socket, journal */
char *path_step(const struct agent_config *c, int64_t job, int64_t attempt);
/* what that is called once the step is forgotten, until all of it is removed */
char *path_step_gone(const struct agent_config *c, int64_t job, int64_t attempt);
/* what its ranks write in their image, and where all of those lie */
char *path_layer(const struct agent_config *c, int64_t job, int64_t attempt);
char *path_layers(const struct agent_config *c);
/* what its ranks wrote, which outlives the step */
char *path_logs(const struct agent_config *c, int64_t job, int64_t attempt);
