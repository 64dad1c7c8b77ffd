/* See claims.h. Ascending by text, then by job. */
#include "daemon/core/update/claims.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"

/* Of the first that is not less. */
static size_t place(const struct claims *k, const char *text, int64_t job)
{
	size_t low = 0, high = k->n;

	while (low < high) {
		size_t at = low + (high - low) / 2;
		int order = strcmp(k->items[at].text, text);

		if (order < 0 || (order == 0 && k->items[at].job < job))
			low = at + 1;
		else
			high = at;
	}
	return low;
}

static bool is_at(const struct claims *k, size_t at, const char *text, int64_t job)
{
	return at < k->n && k->items[at].job == job && mo_streq(k->items[at].text, text);
}

static void add(struct claims *k, const char *text, int64_t job)
{
	size_t at = text ? place(k, text, job) : 0;

	if (!text || is_at(k, at, text, job))
		return;
	MO_GROW(k->items, k->n);
	memmove(k->items + at + 1, k->items + at, (k->n - 1 - at) * sizeof(*k->items));
	k->items[at] = (struct claim){ mo_strdup(text), job };
}

static void remove_from(struct claims *k, const char *text, int64_t job)
{
	size_t at = text ? place(k, text, job) : 0;

	if (!text || !is_at(k, at, text, job))
		return;
	free(k->items[at].text);
	memmove(k->items + at, k->items + at + 1, (k->n - 1 - at) * sizeof(*k->items));
	k->n--;
}

void claims_add_job(struct core *c, const struct job *j)
{
	mo_assert(!job_state_final(j->state));
	add(&c->names, j->spec.recipe.name, j->id);
	add(&c->dirs, j->saves.dir, j->id);
	add(&c->dirs, j->saves.by_config, j->id);
}

void claims_remove_job(struct core *c, const struct job *j)
{
	remove_from(&c->names, j->spec.recipe.name, j->id);
	remove_from(&c->dirs, j->saves.dir, j->id);
	remove_from(&c->dirs, j->saves.by_config, j->id);
}

void claims_clear(struct claims *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->items[i].text);
	free(k->items);
	*k = (struct claims){ 0 };
}

const struct claim *claims_of(const struct claims *k, const char *text, size_t *ret_n)
{
	size_t at = text ? place(k, text, INT64_MIN) : 0, end = at;

	while (text && end < k->n && mo_streq(k->items[end].text, text))
		end++;
	*ret_n = end - at;
	return k->items + at;
}

static void take(const struct claims *k, const char *dir, int64_t **ids, size_t *n)
{
	size_t n_found;
	const struct claim *found = claims_of(k, dir, &n_found);

	for (size_t i = 0; i < n_found; i++)
		ids_add(ids, n, found[i].job);
}

size_t claims_around(const struct core *c, const char *dir, int64_t **ret)
{
	const struct claims *k = &c->dirs;
	_cleanup_(mo_freep) char *below = mo_printf("%s/", mo_streq(dir, "/") ? "" : dir);
	size_t n = 0;

	*ret = NULL;
	take(k, dir, ret, &n);
	if (*dir == '/')
		take(k, "/", ret, &n);
	for (const char *end = *dir ? strchr(dir + 1, '/') : NULL; end;
	     end = strchr(end + 1, '/')) {
		_cleanup_(mo_freep) char *above = mo_strndup(dir, (size_t)(end - dir));

		take(k, above, ret, &n);
	}
	for (size_t i = place(k, below, INT64_MIN);
	     i < k->n && mo_starts_with(k->items[i].text, below); i++)
		ids_add(ret, &n, k->items[i].job);
	return n;
}
