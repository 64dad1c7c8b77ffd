/* Engine files found by name; see engine_load.c. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"

/* The file of that kind, with what it takes over from others. */
int engine_load(const char *kind, struct engine *ret, struct mo_error *err);
