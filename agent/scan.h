/* Scans of checkpoint directories (scan.c), each by moe-ckpt. */
#pragma once
#include "agent/manager.h"

void scan_start(struct manager *m, const struct command *c);
void scans_free(struct manager *m);
