/* Whether this machine gives what engine.container.user: root needs. */
#pragma once
#include <stdbool.h>

/* Tried: a user namespace, and in it an overlay as the root of an image is one. Nothing of it is
 * left. */
bool users_can_be_made(void);
