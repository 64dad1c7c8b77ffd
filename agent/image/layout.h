/* An OCI image layout: a directory with index.json and blobs by their digests. */
#pragma once
#include "agent/image/parts.h"

int layout_read(const struct source *from, const char *architecture, struct parts *ret,
		struct mo_error *err);
