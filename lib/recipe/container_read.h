/* engine.container: an image and what of the nodes ranks see in it (lib/model/container.h). */
#pragma once
#include "lib/recipe/schema.h"

/* A mapping, or only the image; `none` and `false` are the nodes' own files. */
void key_read_container(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_image(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_mounts(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_runtime(struct reader *r, const struct key *k, const struct ynode *v);
void key_read_shm(struct reader *r, const struct key *k, const struct ynode *v);
/* The directory or file that each step has of its own and that the cleaned path lies in; NULL: in
 * none. */
const char *container_made(const char *path);

/* What stands in commands that start containers, and what a recipe says instead. */
#define CONTAINER_OF_THE_NODE \
	"leave it out: ranks in an image keep the node's network, pids and IPC"
#define CONTAINER_NO_RIGHTS \
	"leave it out: ranks in an image run as the job's user, with the same rights as without " \
	"one"
#define CONTAINER_DEVICES "leave it out: ranks see the devices of the GPUs that the job has"
#define CONTAINER_PROGRAM \
	"leave it out: what runs in the image is engine.entry or engine.argv, in engine.workdir"
#define CONTAINER_VOLUMES "write them as engine.container.mounts: [/data:ro, /nfs/me:/work]"
#define CONTAINER_GROUPS "leave it out: ranks have the groups that their user has on the node"
#define CONTAINER_LIMITS \
	"leave it out: limits are those of the nodes, nofile, memlock and pids of their " \
	"agent.yaml"
#define CONTAINER_SHM "write it as engine.container.shm: 64G"
#define CONTAINER_ENV "write variables into env of the recipe"
