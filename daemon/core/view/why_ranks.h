/* How far the ranks of an attempt are, and what they do: parts of the answer to why; see why.c. */
#pragma once
#include "daemon/core/view/view.h"
#include "daemon/core/view/why_view.h"

/* The newest iteration, and which ranks do something else than to iterate. */
void why_progress(const struct state *s, const struct job *j, int64_t now, struct why_view *w);
/* What was judged of a hang, and how often that was right. */
void why_hang(const struct state *s, const struct job *j, int64_t now, struct why_view *w);
