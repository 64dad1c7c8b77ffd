/* The next step's supervisor, started ahead of need where there is no systemd (reserve.c). */
#pragma once
#include "agent/starter.h"

int reserve_starter_new(struct manager *m, struct starter **ret);
