/* Metrics of the controller itself: its loop, its store, its HTTP. */
#pragma once
#include "daemon/manager.h"
#include "lib/base/buf.h"

void metrics_self(struct manager *m, struct mo_buf *b);
