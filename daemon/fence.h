/* The site's fence_command: powers a silent node off, for the core (FX_POWER, IN_POWER). */
#pragma once
#include "daemon/manager.h"

struct fences;
void fences_new(struct manager *m);
/* Commands that run are killed; the next start runs them again. */
struct fences *fences_free(struct fences *f);
/* Runs it for the node, as it stands in the state; IN_POWER follows whatever happens. */
void fence_run(struct manager *m, const char *node);
