/* Who we are to a registry: a file as `docker login` and `podman login` write it. */
#pragma once
#include "lib/base/error.h"

/* User and password for the host, in base64; caller frees. 0, or IMAGE_REFUSED with err: the file
 * is not there, may be read by others, or has nothing for the host. */
int credentials_read(const char *path, const char *host, char **ret, struct mo_error *err);
