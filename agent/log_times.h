/* When bytes of a rank's log were written, by what its supervisor noted beside it
 * (agent/core/stepd/log_time.h). Reads small pieces of local files. */
#pragma once
#include <stdint.h>

/* dir: path_logs(). Returns how many bytes of all that the rank ever wrote came before since_us
 * (wall clock), and up to LOG_TIMES_STEP_US more; INT64_MAX: nothing was written since;
 * -ENOENT: no note of it can be read; an older supervisor made none. */
int64_t log_times_find(const char *dir, int64_t rank, int64_t since_us);
