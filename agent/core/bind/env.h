/* The environment of one rank: layers image < base < profile (then what this node's NICs say) <
 * engine < feature < recipe, then the launch names, which nothing overrides. Pure. */
#pragma once
#include "agent/core/bind/bind.h"
#include "lib/base/error.h"
#include "lib/model/launch.h"
#include "lib/model/nodeinfo.h"

struct env_rank {
	int64_t local_rank;
	const char *ifname; /* interface that owns launch.address, NULL unknown */
	const char *step_id, *notify_socket, *error_file, *home, *user, *shell, *tmpdir;
	/* directory of the user's for its flight recorder; NULL: it is not asked */
	const char *recorder_dir;
};
/* All items of the rank in a stable order, one per name, with `overrides` filled; one without
 * value and file is unset: the rank must not get it. Appends to items. */
void env_compose(const struct launch *l, const struct nodeinfo *info, const struct rank_bind *b,
		 const struct env_rank *r, struct env_item **items, size_t *n_items);
/* What the first rank of the step was given. */
struct env_first {
	const struct env_item *items;
	size_t n_items;
	const struct rank_bind *bind;
};
/* Of another rank of the same step: only the items that differ from the first rank's, which are its
 * own names and what the engine or its cores make of it; all ranks have the same names. For much
 * less than env_compose(). Appends to items. */
void env_compose_next(const struct launch *l, const struct nodeinfo *info,
		      const struct env_first *first, const struct rank_bind *b,
		      const struct env_rank *r, struct env_item **items, size_t *n_items);
/* true for names that only the launcher may set (RANK, WORLD_SIZE, ...). */
bool env_is_launch_name(const char *name);
/* What looks like a credential (lib/model/mask.h) becomes ***: it is shown so outside the node. */
void env_hide(struct env_item *item);
