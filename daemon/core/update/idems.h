/* Idempotency keys: which job a caller's key made. */
#pragma once
#include "daemon/core/state/live.h"

void idems_reindex(struct core *c);
/* NULL if none within MO_IDEM_RETAINED_US */
const struct idem *idem_find(const struct core *c, const char *caller, const char *key,
			     int64_t now);
void idem_add(struct core *c, const struct submit *spec, int64_t job, int64_t now);
