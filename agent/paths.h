/* Where on this node an attempt of a job has its files. Callers free. */
#pragma once
#include "agent/options.h"

/* its step directory: lock, socket, journal */
char *path_step(const struct agent_config *c, int64_t job, int64_t attempt);
/* what its ranks write in their image, and where all of those lie */
char *path_layer(const struct agent_config *c, int64_t job, int64_t attempt);
char *path_layers(const struct agent_config *c);
/* what its ranks wrote, which outlives the step */
char *path_logs(const struct agent_config *c, int64_t job, int64_t attempt);
