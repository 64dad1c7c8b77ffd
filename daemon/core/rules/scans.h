/* What nodes found in checkpoint directories; see scans.c. Called by fleet.c. */
#pragma once
#include "lib/model/message.h"

struct turn;

void fleet_scanned(struct turn *t, const char *node, const struct scan_result *scan);
