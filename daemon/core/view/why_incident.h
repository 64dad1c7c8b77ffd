/* What `moectl why` tells of a job's newest failure: who was first, by which evidence, what was
 * done about it and what is to be done. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/why_view.h"

/* The attempt at hand began because the one before it failed. */
bool why_follows_failure(const struct job *j);
/* A hang of which nobody knows where it began: whose collective ran out of its time first says
 * nothing, and a rank that stands out would be it. */
bool why_hang_without_cause(const struct incident *inc);
/* What nodes told of the last failure after it was judged; nothing: they told nothing. */
void why_later(const struct job *j, struct why_view *ret);
void why_incident(const struct state *s, const struct job *j, struct why_view *ret);
