/* Description of the dry-run value: copying and freeing; its JSON form (env as an object) is
 * lib/wire/dryrun.c. */
#include "lib/model/dryrun.h"

static const struct mo_field dryrun_rank_fields[] = {
	MO_D(dryrun_rank, rank, MO_INT, "number in the job"),
	MO_D(dryrun_rank, node, MO_STR, "name of the node"),
	MO_D(dryrun_rank, local_rank, MO_INT, "number on its node"),
	MO_D_LIST(dryrun_rank, argv, MO_STRS, "words of the command"),
	MO_D_VEC(dryrun_rank, env, &env_item_desc,
		 "variables; without a value: read from a file on the node"),
	MO_D(dryrun_rank, cpus, MO_STR,
	     "CPUs that it is bound to, as a list such as 0-7,64-71; unset: not bound"),
	MO_D(dryrun_rank, numa_node, MO_INT,
	     "number of the NUMA node that it is bound to; unset: unknown"),
	MO_D(dryrun_rank, gpu, MO_INT, "slot of its GPU on the node"),
	MO_D(dryrun_rank, nic, MO_STR, "RDMA device paired with its GPU; unset: there is none"),
};
const struct mo_desc dryrun_rank_desc = MO_DESC(dryrun_rank, dryrun_rank_fields);
