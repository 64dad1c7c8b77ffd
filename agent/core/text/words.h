/* Words of an engine file that only the node knows: {master_addr} {master_port} {nnodes}
 * {node_rank} {rank} {local_rank} {world_size} {local_world_size} {local_gpus} {job} {attempt}
 * {workdir}. Pure. */
#pragma once
#include "lib/model/launch.h"

/* The text with those words replaced; every other brace stays. Caller frees; NULL in, NULL out.
 * home: for {workdir} when the recipe names none. */
char *words_expand(const struct launch *l, int64_t local_rank, const char *home, const char *text);
/* One of them is another one for each rank. */
bool words_name_rank(const char *text);
