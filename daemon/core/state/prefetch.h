/* Images that nodes are to have before a job needs them (`moectl image pull`): who asked, which
 * nodes, and how far each is. In memory only (struct core): a start of the controller ends it, and
 * loses nothing but the order, for what nodes have they keep, and a job brings the rest itself. */
#pragma once
#include "lib/model/image.h"

enum prefetch_state {
	PREFETCH_WAITING,  /* not asked yet: enough others are busy, or the first is to say which
			      image it is */
	PREFETCH_BRINGING, /* its agent is asked */
	PREFETCH_READY,
	PREFETCH_FAILED,
	_PREFETCH_STATE_N
};
extern const char *const prefetch_state_names[_PREFETCH_STATE_N];

struct prefetch_node {
	char *node;
	int state; /* enum prefetch_state */
	bool unpacking;
	int64_t done, size; /* bytes */
	char *error;        /* FAILED, or of the last try */
};
struct prefetch {
	int64_t id;
	char *user; /* who asked */
	struct image_order order;
	struct prefetch_node *nodes;
	size_t n_nodes;
	int64_t until;    /* what is not there then has failed */
	int64_t ended_at; /* MO_NONE: it goes on */
};
extern const struct mo_desc prefetch_desc; /* as documents show it */
struct prefetch *prefetch_free(struct prefetch *p);
bool prefetch_node_over(const struct prefetch_node *n);
