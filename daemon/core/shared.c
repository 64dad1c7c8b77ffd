/* One set of engine and profiles for many jobs (shared.h): counted references; nothing here changes
 * a set. Callers: update.c and core.c with the pool of the core, daemon/journal.c when it reads. */
#include "daemon/core/shared.h"

#include <assert.h>
#include <string.h>

static const struct mo_field set_fields[] = {
	MO_F_SUB(shared, engine, MO_STRUCT, &engine_desc),
	MO_F_VEC(shared, profiles, &env_profile_desc),
};
static const struct mo_desc set_desc = MO_DESC(shared, set_fields);

/* Borrows. */
static struct shared set_of(const struct submit *s)
{
	return (struct shared){ 0, s->engine, s->profiles, s->n_profiles };
}

struct shared *shared_new(const struct engine *e, const struct env_profile *profiles, size_t n)
{
	struct shared given = { 0, *e, (struct env_profile *)profiles, n };
	struct shared *s = mo_desc_dup(&set_desc, &given);

	s->refs = 1;
	return s;
}

struct shared *shared_unref(struct shared *s)
{
	assert(!s || s->refs > 0);
	if (s && --s->refs == 0)
		mo_desc_free(&set_desc, s);
	return NULL;
}

void submit_unshare(void *submit)
{
	struct submit *s = submit;

	if (!s->shared)
		return;
	mo_desc_init(&engine_desc, &s->engine);
	s->profiles = NULL;
	s->n_profiles = 0;
	s->shared = shared_unref(s->shared);
}

void submit_share(struct submit *s, struct shared *with)
{
	with->refs++; /* before what s has goes: it may be the same */
	submit_unshare(s);
	mo_desc_done(&engine_desc, &s->engine);
	mo_vec_clear(&env_profile_desc, (void **)&s->profiles, &s->n_profiles);
	s->engine = with->engine;
	s->profiles = with->profiles;
	s->n_profiles = with->n_profiles;
	s->shared = with;
}

void shared_pool_done(struct shared_pool *p)
{
	for (size_t i = 0; i < p->n; i++)
		shared_unref(p->items[i]);
	p->n = 0;
}

/* Takes the caller's reference. */
static struct shared *add(struct shared_pool *p, struct shared *s)
{
	if (p->n == SHARED_MAX)
		shared_unref(p->items[--p->n]);
	memmove(p->items + 1, p->items, p->n++ * sizeof(*p->items));
	return p->items[0] = s;
}

static struct shared *find(struct shared_pool *p, const struct submit *s)
{
	const struct shared want = set_of(s);

	for (size_t i = 0; i < p->n; i++) {
		struct shared *at = p->items[i];

		if (at != s->shared && !mo_desc_equal(&set_desc, at, &want))
			continue;
		memmove(p->items + 1, p->items, i * sizeof(*p->items));
		return p->items[0] = at;
	}
	return NULL;
}

static struct shared *find_or_add(struct shared_pool *p, const struct submit *s)
{
	struct shared *known = find(p, s);

	if (known)
		return known;
	if (!s->shared)
		return add(p, shared_new(&s->engine, s->profiles, s->n_profiles));
	s->shared->refs++;
	return add(p, s->shared);
}

void shared_pool_take(struct shared_pool *p, struct submit *s)
{
	submit_share(s, find_or_add(p, s));
}

void shared_pool_copy(struct shared_pool *p, struct submit *dst, const struct submit *src)
{
	struct submit rest = *src; /* owns nothing */

	mo_desc_init(&engine_desc, &rest.engine);
	rest.profiles = NULL;
	rest.n_profiles = 0;
	mo_desc_copy(&submit_desc, dst, &rest);
	submit_share(dst, find_or_add(p, src));
}
