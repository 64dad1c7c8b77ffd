/* The binding of all ranks of a launch on one node: bind_plan() where each rank has a GPU, one
 * binding over all of them where one process has all GPUs. Pure. */
#pragma once
#include "agent/core/bind/bind.h"
#include "lib/model/launch.h"

/* As bind_plan(); how: the launch's own, possibly with more reserved cores. *n_ret is
 * launch.n_local. */
int bind_launch(const struct nodeinfo *info, const struct launch *l, const struct recipe_bind *how,
		const char *taken_cpus, struct rank_bind **ret, size_t *n_ret,
		struct mo_error *err);
