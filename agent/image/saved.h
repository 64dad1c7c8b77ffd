/* What `docker save` writes: an archive with manifest.json, a configuration and layers. */
#pragma once
#include "agent/image/parts.h"

int saved_read(const struct source *from, struct parts *ret, struct mo_error *err);
