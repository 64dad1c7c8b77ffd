/* What a daemon of ours uses of its machine, under the names that Prometheus' own client libraries
 * have for it. */
#pragma once
#include "lib/base/buf.h"

void process_metrics(struct mo_buf *b);
