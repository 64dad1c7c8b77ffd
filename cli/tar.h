/* A tar archive put together in memory (POSIX.1-1988 ustar, plain files only). Of our own, as a
 * command is started for each word: libarchive would be loaded with its ten libraries each time. */
#pragma once
#include "lib/base/buf.h"

/* name: at most 99 bytes. time_s: since 1970. */
void tar_add(struct mo_buf *b, const char *name, const void *data, size_t n, int64_t time_s);
/* Once, behind the last. */
void tar_end(struct mo_buf *b);
