/* What why says of losses that are no numbers, or far too high. */
#pragma once
#include "daemon/core/view/why_view.h"

struct job;

/* The loss is bad now, and what follows when it stays. */
void why_loss(const struct job *j, struct why_view *w);
/* Checkpoints that no attempt takes by itself, the newest first. */
void why_tainted(const struct job *j, struct why_view *w);
