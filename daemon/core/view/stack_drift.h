/* Differences of software among nodes with GPUs of one model, as a document. */
#pragma once
#include "daemon/core/state/state.h"

struct drift_odd {
	char *value;
	int64_t count;
	char **nodes;
	size_t n_nodes;
};
struct drift_key {
	char *key, *value;
	int64_t count, values;
	struct drift_odd *odd;
	size_t n_odd;
};
struct drift_group {
	char *gpu;
	int64_t nodes, same;
	struct drift_key *keys;
	size_t n_keys;
};
struct drift_view {
	struct drift_group *groups;
	size_t n_groups;
	int64_t untold;
};
extern const struct mo_desc drift_odd_desc, drift_key_desc, drift_group_desc, drift_view_desc;

/* ret must be initialised. */
void stack_drift_view(const struct state *s, struct drift_view *ret);
