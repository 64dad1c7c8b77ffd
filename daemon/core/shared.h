/* The engine's description and the environment profiles of a job are eight tenths of its submit in
 * memory (80 kB of Primus') and the same for most jobs: each distinct set is held once and counted.
 * What is shared is never changed. A copy of a job (mo_desc_copy) has its own. */
#pragma once
#include "daemon/core/state.h"

struct shared {
	int64_t refs;
	struct engine engine;
	struct env_profile *profiles;
	size_t n_profiles;
};
/* With copies of both, and one reference for the caller. */
struct shared *shared_new(const struct engine *e, const struct env_profile *profiles, size_t n);
struct shared *shared_unref(struct shared *s); /* NULL allowed; NULL */
/* s has these instead of its own; one more reference. */
void submit_share(struct submit *s, struct shared *with);
/* Takes them away again: s has none then. Called by submit_desc before it frees. */
void submit_unshare(void *submit);

#define SHARED_MAX 256 /* sets that a new job is compared with, last used first */
struct shared_pool {
	struct shared *items[SHARED_MAX];
	size_t n;
};
void shared_pool_done(struct shared_pool *p);
/* dst, initialised, becomes a copy of src that shares what it can. */
void shared_pool_copy(struct shared_pool *p, struct submit *dst, const struct submit *src);
/* s shares what it can, and later ones with it. */
void shared_pool_take(struct shared_pool *p, struct submit *s);
