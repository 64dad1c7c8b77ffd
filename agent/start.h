/* Starting a step's supervisor, in the way that this node has (start.c). */
#pragma once
#include "agent/starter.h"

int starter_new(struct manager *m, struct starter **ret, struct mo_error *err);
struct starter *starter_free(struct starter *s);
void step_start(struct step_dir *d);
