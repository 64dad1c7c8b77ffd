/* What the ranks of a step were started with, as stepd leaves it in the step's directory
 * (env.json) and the agent hands it to the controller: the first rank's whole environment and of
 * each rank what differs from it, so that eight ranks cost little more than one. Secrets are
 * ***. Pure. */
#pragma once
#include "lib/model/launch.h"

struct env_of_rank {
	int64_t rank;
	struct env_item *items;
	size_t n_items;
};
struct env_record {
	struct env_item *items;
	size_t n_items; /* of the first rank */
	struct env_of_rank *ranks;
	size_t n_ranks; /* every rank; items: those that differ */
};
extern const struct mo_desc env_record_desc;

/* items: of the first rank all (env_compose()), of others all or what differs
 * (env_compose_next()). */
void env_record_add(struct env_record *rec, int64_t rank, const struct env_item *items, size_t n);
/* The rank's environment, appended to ret. False: the record does not have the rank. */
bool env_record_of(const struct env_record *rec, int64_t rank, struct env_item **ret,
		   size_t *n_ret);
