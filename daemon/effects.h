/* What the core asks for once its records are stored: see effects.c. */
#pragma once
#include "daemon/input.h"
#include "lib/base/desc.h"
#include "lib/http/server.h"

void effect_do(struct manager *m, struct input *in, const struct effect *fx);
extern const struct mo_desc submitted_view_desc;
