/* Which engine kind runs an experiment: by its framework, and by pre- or post-training. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/experiment.h"

/* The kind (caller frees); NULL: this version has none for it. post: its command asks for
 * post-training already. */
char *experiment_kind(const struct experiment *x, bool post);
/* 0, or -EINVAL with err (FILE:LINE, and the kind to use) when engine e is for another framework,
 * or for post-training and the file for pretraining. */
int experiment_kind_check(const struct engine *e, const struct experiment *x, struct mo_error *err);
