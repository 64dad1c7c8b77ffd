/* Nodes that do not start their part of a job before a GPU is given back; see why_release.c. */
#pragma once
#include "daemon/core/state/state.h"

struct why_view;
void why_release(const struct state *s, const struct job *j, int64_t now, struct why_view *w);
