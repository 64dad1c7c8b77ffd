/* Plan searches: short-lived helper processes with limits (two at once), never in the loop. */
#pragma once
#include "daemon/manager.h"

void helpers_new(struct manager *m);
struct helpers *helpers_free(struct helpers *h);
