/* See journal_parts.h. */
#include "daemon/journal_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/shared.h"
#include "lib/base/parse.h"
#include "lib/base/util.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

struct parts {
	struct engine engine;
	struct env_item *env;
	size_t n_env;
	struct env_profile *profiles;
	size_t n_profiles;
};
static const struct mo_field parts_fields[] = {
	MO_D_SUB(parts, engine, MO_STRUCT, &engine_desc,
		 "the engine file without what a recipe adds"),
	MO_D_VEC(parts, env, &env_item_desc,
		 "variables of the ranks: each submit has its own since 2026-11-29"),
	MO_D_VEC(parts, profiles, &env_profile_desc, "profiles of the environment"),
};
static const struct mo_desc parts_desc = MO_DESC(parts, parts_fields);

/* shared: made when the first job that was read refers to it; those that do share it. like: what
 * the last submit shared that was compared with it and had the same, as own as like_own. */
struct parts_set {
	int64_t id;
	struct parts parts;
	struct shared *shared, *like;
	bool like_own;
};
void parts_forget(struct parts_table *t, size_t n)
{
	for (size_t i = n; i < t->n; i++) {
		mo_desc_done(&parts_desc, &t->items[i]->parts);
		shared_unref(t->items[i]->shared);
		shared_unref(t->items[i]->like);
		free(t->items[i]);
	}
	t->n = MO_MIN(t->n, n);
	if (t->n == 0) {
		free(t->items);
		t->items = NULL;
	}
}

void parts_table_done(struct parts_table *t)
{
	parts_forget(t, 0);
}

static void table_to_front(struct parts_table *t, size_t at)
{
	struct parts_set *k = t->items[at];

	memmove(t->items + 1, t->items, at * sizeof(*t->items));
	t->items[0] = k;
}

static struct parts_set *table_add(struct parts_table *t, int64_t id)
{
	struct parts_set *k = mo_alloc(sizeof(*k));

	k->id = id;
	mo_desc_init(&parts_desc, &k->parts);
	*MO_GROW(t->items, t->n) = k;
	table_to_front(t, t->n - 1);
	return k;
}

static struct parts_set *table_find(const struct parts_table *t, int64_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i]->id == id)
			return t->items[i];
	return NULL;
}

static void write_line(const struct parts_set *k, struct mo_buf *b)
{
	mo_buf_printf(b, "parts %lld ", (long long)k->id);
	wire_encode(&parts_desc, &k->parts, b);
	mo_buf_str(b, "\n");
}

bool parts_write(const struct parts_table *t, int64_t id, struct mo_buf *b)
{
	const struct parts_set *k = id == MO_NONE ? NULL : table_find(t, id);

	if (k)
		write_line(k, b);
	return k != NULL;
}

/* Borrows. */
static struct parts parts_of(const struct submit *s)
{
	return (struct parts){ submit_is_own(s) ? engine_base_of(&s->engine) : s->engine, NULL, 0,
			       s->profiles, s->n_profiles };
}

/* What is shared is never changed: its address says that engine and profiles are the same, which
 * takes 5 ms to compare where the engine is Primus. */
static bool same_shared(const struct parts_set *k, const struct submit *s)
{
	return k->like && k->like == s->shared && k->like_own == submit_is_own(s);
}

static void remember(struct parts_set *k, const struct submit *s)
{
	if (!s->shared || same_shared(k, s))
		return;
	shared_unref(k->like);
	k->like = shared_ref(s->shared);
	k->like_own = submit_is_own(s);
}

/* Where the submit's set is in t; t->n: it has none. */
static size_t table_search(const struct parts_table *t, const struct submit *s,
			   const struct parts *want)
{
	for (size_t i = 0; i < t->n; i++)
		if (same_shared(t->items[i], s))
			return i;
	for (size_t i = 0; i < t->n; i++)
		if (mo_desc_equal(&parts_desc, &t->items[i]->parts, want))
			return i;
	return t->n;
}

int64_t parts_refer(struct parts_table *t, const struct submit *s, struct mo_buf *b)
{
	struct parts want = parts_of(s);
	size_t at = table_search(t, s, &want);

	if (at < t->n) {
		table_to_front(t, at);
	} else if (t->n < PARTS_MAX) {
		struct parts_set *k = table_add(t, ++t->last_id);
		mo_desc_copy(&parts_desc, &k->parts, &want);
		write_line(k, b);
	} else {
		return MO_NONE;
	}
	remember(t->items[0], s);
	return t->items[0]->id;
}

struct submit parts_stripped(const struct submit *s, int64_t parts)
{
	struct submit bare = *s;

	if (parts == MO_NONE)
		return bare;
	if (submit_is_own(s)) {
		bare.own = mo_alloc(sizeof(*bare.own));
		*bare.own = engine_own_of(&s->engine);
	}
	mo_desc_init(&engine_desc, &bare.engine);
	bare.profiles = NULL;
	bare.n_profiles = 0;
	bare.parts = parts;
	return bare;
}

int parts_read(struct parts_table *t, const char **text, size_t *n, struct mo_error *err)
{
	while (*n > 6 && memcmp(*text, "parts ", 6) == 0) {
		const char *number = *text + 6, *end = memchr(*text, '\n', *n),
			   *json = end ? memchr(number, ' ', (size_t)(end - number)) : NULL;
		_cleanup_(mo_freep) char *id_text =
			json ? mo_strndup(number, (size_t)(json - number)) : NULL;
		int64_t id = 0;
		if (!id_text || mo_parse_i64(id_text, 1, INT64_MAX - 1, &id) < 0)
			return mo_error_set(err, -EINVAL, "a line of parts is malformed");
		struct parts_set *k = table_add(t, id);
		json++;
		int r = wire_decode(&parts_desc, json, (size_t)(end - json), false, &k->parts, err);
		if (r < 0)
			return r;
		t->last_id = MO_MAX(t->last_id, id);
		*n -= (size_t)(end + 1 - *text);
		*text = end + 1;
	}
	return 0;
}

int parts_fill(const struct parts_table *t, struct submit *s, struct mo_error *err)
{
	if (s->parts == MO_NONE)
		return 0;
	struct parts_set *k = table_find(t, s->parts);
	if (!k)
		return mo_error_set(err, -EINVAL, "it refers to parts %lld, which are not there",
				    (long long)s->parts);
	const struct parts *parts = &k->parts;
	for (size_t i = 0; i < parts->n_env; i++)
		mo_desc_copy(&env_item_desc, MO_ADD(s, env, &env_item_desc), &parts->env[i]);
	if (!k->shared)
		k->shared = shared_new(&parts->engine, parts->profiles, parts->n_profiles, s);
	submit_share(s, k->shared);
	if (s->own)
		submit_own(s, s->own);
	mo_desc_free(&engine_own_desc, s->own);
	s->own = NULL;
	s->parts = MO_NONE;
	return 0;
}

const char *parts_behind(const char *text, size_t *n)
{
	const char *end;

	while (*n > 6 && memcmp(text, "parts ", 6) == 0 && (end = memchr(text, '\n', *n)) != NULL) {
		*n -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	return text;
}
