/* Datagrams that a rank sends, as programs tell systemd: KEY=VALUE lines -> facts. Pure; untrusted
 * input. Called by stepd for each datagram. */
#pragma once
#include "agent/core/text/line_fact.h"

/* One notify datagram ("KEY=VALUE\n..."), at most 8 KiB; unknown keys are ignored. -EINVAL when
 * nothing was understood. kind is LINE_SAMPLE when a metric is given, or ITERATION alone (an
 * iteration ended); LINE_PHASE with PHASE or READY and no metric; else -1. phase, ready,
 * checkpoint and status are set beside it; iteration = ITERATION, else the digits that
 * CHECKPOINT ends in. */
int notify_read(const char *data, size_t n, int64_t world, struct line_fact *ret);
