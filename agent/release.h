/* Steps that wait until the jobs before them have given back their GPUs (release.c). */
#pragma once
#include "agent/manager.h"

struct step_dir;
struct releases *releases_new(struct manager *m);
struct releases *releases_free(struct releases *r);
/* AX_RELEASE: AE_RELEASED follows, at once where nothing is to be waited for. */
void release_ask(struct releases *r, struct step_dir *d);
/* Something was read of a GPU. */
void releases_look(struct releases *r);
