/* A descriptor that can be read, on the loop. */
#pragma once
#include <systemd/sd-event.h>

/* fn whenever a descriptor can be read, or has ended; a pidfd: when the process has. fn may free
 * it. The descriptor stays the caller's. 0, or a negative errno. */
struct mo_ready;
int mo_ready_new(sd_event *loop, int fd, void (*fn)(void *arg), void *arg, struct mo_ready **ret);
struct mo_ready *mo_ready_free(struct mo_ready *r); /* before the descriptor is closed */
