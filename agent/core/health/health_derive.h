/* Readings that are made of others; see health_derive.c. */
#pragma once
#include "agent/core/health/health.h"
#include "agent/core/health/health_state.h"

/* readings that follow from others */
void health_derive(const struct health *h, const struct object *o, struct probe *p);
