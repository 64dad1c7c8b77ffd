/* Sensor values of GPUs and cards, the newest of each; see readings.c. */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/model/message.h"

#define SENSORS_FRESH_US (30 * 1000000LL)

struct core;
struct turn;

void health_sensed(struct turn *t, const struct agent_sync *s);
/* Newest values of the node's GPUs and cards, NULL when there are none of the last 30 s (of
 * cards: two minutes). */
const struct gpu_sensors *core_sensors(const struct core *core, const char *node, int64_t now,
				       size_t *ret_n);
const struct nic_sensors *core_nics(const struct core *core, const char *node, int64_t now,
				    size_t *ret_n);
/* What the job's GPUs and cards were last seen to do, as lines: a summary, then each GPU, the
 * least active ones of a large job. Nothing when nothing is known. */
void core_readings(const struct core *core, const struct job *j, int64_t now, char ***texts,
		   size_t *n_texts);
