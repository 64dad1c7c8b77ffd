/* The engine's description and the environment profiles of a job are eight tenths of its submit in
 * memory (80 kB of Primus') and the same for most jobs: each distinct set is held once and counted.
 * Words and variables that are the set's too are held by it alone (shared_words.h). What is shared
 * is never changed. A copy of a job (mo_desc_copy) has its own. */
#pragma once
#include "daemon/core/state/state.h"

struct shared {
	int64_t refs;
	struct engine engine;
	struct env_profile *profiles;
	size_t n_profiles;
	/* words, variables and recipe as the job says that came first; others have of them what
	 * they say too (shared_words.h). NULL: none is to share them */
	struct submit *words;
};
/* With copies of all, and one reference for the caller. words: the job that came first; NULL: none
 * is to share its words. */
struct shared *shared_new(const struct engine *e, const struct env_profile *profiles, size_t n,
			  const struct submit *words);
struct shared *shared_ref(struct shared *s);
struct shared *shared_unref(struct shared *s); /* NULL allowed; NULL */
/* s has these instead of its own; one more reference. */
void submit_share(struct submit *s, struct shared *with);
/* Takes them away again: s has none then. Called by submit_desc before it frees. */
void submit_unshare(void *submit);
/* s, which is to be changed, has copies of its own instead. */
void submit_unique(struct submit *s);

/* Of a recipe that says such things of its own (struct engine_own), one set of all else is
 * shared, and its own are its own: a hundred thousand jobs with a line rule each cost no hundred
 * thousand engines. */
bool submit_is_own(const struct submit *s);
/* Borrows. */
struct engine_own engine_own_of(const struct engine *e);
struct engine engine_base_of(const struct engine *e); /* without them */
/* s, which shares, has copies of these. */
void submit_own(struct submit *s, const struct engine_own *own);
/* A finished job needs of them only the layout. */
void submit_own_forget(struct submit *s);

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
