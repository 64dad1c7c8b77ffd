/* Files that hold a token or a key. Nobody but their owner may read them: the mode is 0600 or
 * less, or 0640 when root owns them (a key that a service's group may read). Links are followed:
 * what counts is the file itself. Pipes and such (`--token-file <(pass moe)`) are judged the
 * same way. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

/* 0, -EPERM when others may read or write it, or the errno of reading it; err then has one
 * sentence with what to do. */
int mo_secret_check(const char *path, struct mo_error *err);
/* The whole file, after that check on the very file that is read. */
int mo_secret_read(const char *path, size_t max, struct mo_buf *b, struct mo_error *err);
/* The same of a regular file (-EINVAL: another kind), which is not waited for: it is somebody
 * else's. */
int mo_secret_read_file(const char *path, size_t max, struct mo_buf *b, struct mo_error *err);
/* The token in such a file: its first word. Never empty; caller frees. */
int mo_token_read(const char *path, char **ret, struct mo_error *err);
