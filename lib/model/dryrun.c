/* Description of the dry-run value: copying and freeing; its JSON form (env as an object) is
 * lib/wire/dryrun.c. */
#include "lib/model/dryrun.h"

static const struct mo_field dryrun_rank_fields[] = {
	MO_F(dryrun_rank, rank, MO_INT),
	MO_F(dryrun_rank, node, MO_STR),
	MO_F(dryrun_rank, local_rank, MO_INT),
	MO_F_LIST(dryrun_rank, argv, MO_STRS),
	MO_F_VEC(dryrun_rank, env, &env_item_desc),
	MO_F(dryrun_rank, cpus, MO_STR),
	MO_F(dryrun_rank, numa_node, MO_INT),
	MO_F(dryrun_rank, gpu, MO_INT),
	MO_F(dryrun_rank, nic, MO_STR),
};
const struct mo_desc dryrun_rank_desc = MO_DESC(dryrun_rank, dryrun_rank_fields);
