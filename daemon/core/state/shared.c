/* One set of engine and profiles for many jobs (shared.h): counted references; nothing here changes
 * a set. Callers: update.c and core.c with the pool of the core, daemon/journal.c when it reads. */
#include "daemon/core/state/shared.h"

#include <string.h>

#include "daemon/core/state/shared_words.h"
#include "lib/base/assert.h"

static const struct mo_field set_fields[] = {
	MO_D_SUB(shared, engine, MO_STRUCT, &engine_desc,
		 "the engine's description; of a recipe with parts of its own, the rest of it"),
	MO_D_VEC(shared, profiles, &env_profile_desc, "environment profiles that go with the job"),
	MO_D_SUB(shared, words, MO_OPT, &submit_desc, "of the job that came first"),
};
static const struct mo_desc set_desc = MO_DESC(shared, set_fields);

bool submit_is_own(const struct submit *s)
{
	const struct recipe *r = &s->recipe;
	/* daemon/spec.c */
	bool owned = r->engine.n_args_unchecked && s->n_prepare && s->engine.prepare_hooks;

	return s->owns || owned || r->own_lines > 0 || r->checkpoint.layout ||
	       r->checkpoint.n_resume_args;
}

struct engine_own engine_own_of(const struct engine *e)
{
	return (struct engine_own){ e->rules,  e->n_rules, e->resume, e->n_resume,
				    e->layout, e->owned,   e->n_owned };
}

static void put_own(struct engine *e, const struct engine_own *own)
{
	e->rules = own->rules;
	e->n_rules = own->n_rules;
	e->resume = own->resume;
	e->n_resume = own->n_resume;
	e->layout = own->layout;
	e->owned = own->owned;
	e->n_owned = own->n_owned;
}

struct engine engine_base_of(const struct engine *e)
{
	struct engine base = *e;
	struct engine_own none;

	mo_desc_init(&engine_own_desc, &none);
	put_own(&base, &none);
	return base;
}

/* What makes two sets one: without words. Borrows. */
static struct shared set_of(const struct submit *s)
{
	return (struct shared){ .engine = submit_is_own(s) ? engine_base_of(&s->engine) : s->engine,
				.profiles = s->profiles,
				.n_profiles = s->n_profiles };
}

struct shared *shared_new(const struct engine *e, const struct env_profile *profiles, size_t n,
			  const struct submit *words)
{
	struct shared given = { .engine = *e,
				.profiles = (struct env_profile *)profiles,
				.n_profiles = n };
	struct shared *s = mo_desc_dup(&set_desc, &given);

	s->refs = 1;
	s->words = words ? words_of(words) : NULL;
	return s;
}

struct shared *shared_ref(struct shared *s)
{
	assert(s && s->refs > 0);
	s->refs++;
	return s;
}

struct shared *shared_unref(struct shared *s)
{
	assert(!s || s->refs > 0);
	if (s && --s->refs == 0)
		mo_desc_free(&set_desc, s);
	return NULL;
}

static void submit_disown(struct submit *s)
{
	struct engine_own own = engine_own_of(&s->engine);

	if (s->owns)
		mo_desc_done(&engine_own_desc, &own);
	s->owns = false;
}

void submit_unshare(void *submit)
{
	struct submit *s = submit;

	if (!s->shared)
		return;
	words_return(s);
	submit_disown(s);
	mo_desc_init(&engine_desc, &s->engine);
	s->profiles = NULL;
	s->n_profiles = 0;
	s->shared = shared_unref(s->shared);
}

void submit_share(struct submit *s, struct shared *with)
{
	shared_ref(with); /* before what s has goes: it may be the same */
	words_own(s);
	submit_unshare(s);
	mo_desc_done(&engine_desc, &s->engine);
	mo_vec_clear(&env_profile_desc, (void **)&s->profiles, &s->n_profiles);
	s->engine = with->engine;
	s->profiles = with->profiles;
	s->n_profiles = with->n_profiles;
	s->shared = with;
	words_lend(s);
}

void submit_unique(struct submit *s)
{
	struct shared *copy =
		s->shared ? shared_new(&s->engine, s->profiles, s->n_profiles, NULL) : NULL;

	if (!copy)
		return;
	words_own(s);
	submit_unshare(s);
	s->engine = copy->engine;
	s->profiles = copy->profiles;
	s->n_profiles = copy->n_profiles;
	free(copy); /* what it held is now in s */
}

void submit_own(struct submit *s, const struct engine_own *own)
{
	struct engine_own copy;

	mo_desc_init(&engine_own_desc, &copy);
	mo_desc_copy(&engine_own_desc, &copy, own);
	submit_disown(s);
	put_own(&s->engine, &copy);
	s->owns = true;
}

void submit_own_forget(struct submit *s)
{
	struct engine_own rest;

	if (!s->owns)
		return;
	mo_desc_init(&engine_own_desc, &rest);
	rest.layout = s->engine.layout;
	submit_own(s, &rest);
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
	mo_assert(p->n <= SHARED_MAX && s->refs > 0);
	if (p->n == SHARED_MAX)
		shared_unref(p->items[--p->n]);
	memmove(p->items + 1, p->items, p->n++ * sizeof(*p->items));
	return p->items[0] = s;
}

/* Neither what is the recipe's own nor words are part of what tells sets apart. */
static bool same(const struct shared *at, const struct submit *s, const struct shared *want)
{
	const struct shared base = { .engine = submit_is_own(s) ? engine_base_of(&at->engine)
								: at->engine,
				     .profiles = at->profiles,
				     .n_profiles = at->n_profiles };

	return mo_desc_equal(&set_desc, &base, want);
}

static struct shared *find(struct shared_pool *p, const struct submit *s)
{
	const struct shared want = set_of(s);
	size_t at = 0;

	while (at < p->n && p->items[at] != s->shared)
		at++;
	if (at == p->n)
		for (at = 0; at < p->n && !same(p->items[at], s, &want);)
			at++;
	if (at == p->n)
		return NULL;
	struct shared *found = p->items[at];

	memmove(p->items + 1, p->items, at * sizeof(*p->items));
	return p->items[0] = found;
}

static struct shared *find_or_add(struct shared_pool *p, const struct submit *s)
{
	struct shared *known = find(p, s);

	if (known)
		return known;
	if (!s->shared) {
		const struct shared set = set_of(s);

		return add(p, shared_new(&set.engine, set.profiles, set.n_profiles, s));
	}
	return add(p, shared_ref(s->shared));
}

void shared_pool_take(struct shared_pool *p, struct submit *s)
{
	struct shared *set = find_or_add(p, s);
	const struct engine_own given = engine_own_of(&s->engine);
	struct engine_own *own;

	if (set == s->shared)
		return;
	own = submit_is_own(s) ? mo_desc_dup(&engine_own_desc, &given) : NULL;
	submit_share(s, set);
	if (own)
		submit_own(s, own);
	mo_desc_free(&engine_own_desc, own);
}

void shared_pool_copy(struct shared_pool *p, struct submit *dst, const struct submit *src)
{
	struct submit rest = *src; /* owns nothing */

	mo_assert(dst != src && p->n <= SHARED_MAX);
	mo_desc_init(&engine_desc, &rest.engine);
	rest.profiles = NULL;
	rest.n_profiles = 0;
	mo_desc_copy(&submit_desc, dst, &rest);
	submit_share(dst, find_or_add(p, src));
	if (submit_is_own(src)) {
		const struct engine_own own = engine_own_of(&src->engine);

		submit_own(dst, &own);
	}
}
