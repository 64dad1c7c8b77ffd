/* The step's own mount namespace (namespace.c). */
#pragma once
#include "agent/stepd/stepd.h"

/* SX_NAMESPACE: answered by SE_NAMESPACE; s->mnt_fd is then where ranks enter, -1: no place. */
void namespace_start(struct stepd *s);
void namespace_tick(struct stepd *s); /* the maker's deadline */
