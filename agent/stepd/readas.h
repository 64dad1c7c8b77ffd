/* Small files that a recipe names, read as the job's user (readas.c). */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/identity.h"

/* A small file read as that user (never with more rights than he has). -ETIMEDOUT: not within
 * end_ms of the boot clock; -EMEDIUMTYPE: it is no plain file; -EFBIG. */
int read_file_as(const struct mo_identity *who, const char *path, size_t max, int64_t end_ms,
		 struct mo_buf *b);
