/* Walls between jobs that share a node: in a step's mount namespace only the device files of its
 * own GPUs and network cards exist. They stand where the agent says so of its node
 * (nodeinfo.walls) and the step has fewer GPUs than it. The runtime numbers the GPUs that it can
 * open, so behind a wall they count from 0. Asked by who makes the namespace
 * (agent/core/stepd/box_make.h) and by who numbers the GPUs (env.c), also in moed for a preview:
 * both must find the same. Pure. */
#pragma once
#include "lib/model/launch.h"
#include "lib/model/nodeinfo.h"

/* Of the files in /dev/dri the ranks see those of their GPUs only. */
bool walls_gpus(const struct launch *l, const struct nodeinfo *info);
/* Likewise in /dev/infiniband; never without the former. Not where the ranks may choose their
 * network cards for themselves, or a card's file is not known. */
bool walls_nics(const struct launch *l, const struct nodeinfo *info);
/* Number by which the runtime of the ranks knows that slot of the job. */
int64_t walls_number(const struct launch *l, const struct nodeinfo *info, int64_t gpu);

/* What an agent says of its node, in info->walls and, where jobs that share it are not kept apart
 * although they should be, in a finding about WALLS_OBJECT. */
struct walls_terms {
	bool wanted; /* agent.yaml: walls */
	bool files;  /* the render nodes that discovery names are device files of this machine */
	bool able;   /* the agent's supervisors may make mount namespaces */
};
void walls_settle(struct nodeinfo *info, const struct walls_terms *t);
