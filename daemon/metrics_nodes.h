/* Metrics of the cluster: as many series whether it has ten nodes or 12,500. What one node's GPUs
 * do its agent tells (agent/metrics.h). */
#pragma once
#include "daemon/manager.h"
#include "lib/base/buf.h"

void metrics_nodes(struct manager *m, struct mo_buf *b);
