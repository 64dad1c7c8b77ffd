/* Idempotency keys: found by hash, so that a submit costs the same with a hundred thousand keys
 * of the last day. The state holds them oldest first; the index (heads, hash, next) is derived:
 * made anew when keys leave, which they do an eighth at a time. Callers: job_submit, update.c,
 * core_reindex. */
#include "daemon/core/update/idems.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/model/limits.h"

#define HEADS_MIN 1024

static uint64_t hash_of(const char *caller, const char *key)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (const char *p = caller ? caller : ""; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	h = (h ^ 0xff) * 0x100000001b3u;
	for (const char *p = key; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	return h;
}

static void link_in(struct core *c, size_t at)
{
	assert(at < c->owned.n_idems && c->n_idem_heads > 0);
	struct idem *i = &c->owned.idems[at];
	uint32_t *head = &c->idem_heads[i->hash & (c->n_idem_heads - 1)];

	i->next = *head;
	*head = (uint32_t)at + 1;
}

void idems_reindex(struct core *c)
{
	size_t n = HEADS_MIN;

	mo_assert((n & (n - 1)) == 0); /* hashes are masked with n - 1 */
	while (n < 2 * c->owned.n_idems)
		n *= 2;
	free(c->idem_heads);
	c->idem_heads = mo_alloc_array(n, sizeof(*c->idem_heads));
	c->n_idem_heads = n;
	for (size_t i = 0; i < c->owned.n_idems; i++) {
		c->owned.idems[i].hash = hash_of(c->owned.idems[i].caller, c->owned.idems[i].key);
		link_in(c, i);
	}
}

const struct idem *idem_find(const struct core *c, const char *caller, const char *key, int64_t now)
{
	uint64_t hash = hash_of(caller, key);

	mo_assert(key && c->n_idem_heads > 0);
	for (uint32_t at = c->idem_heads[hash & (c->n_idem_heads - 1)]; at;
	     at = c->owned.idems[at - 1].next) {
		const struct idem *i = &c->owned.idems[at - 1];

		if (i->hash == hash && mo_streq(i->key, key) && mo_streq(i->caller, caller))
			return i->time + MO_IDEM_RETAINED_US < now ? NULL : i;
	}
	return NULL;
}

static void drop_oldest(struct state *s, size_t n)
{
	assert(n <= s->n_idems);
	for (size_t i = 0; i < n; i++)
		mo_desc_done(&idem_desc, &s->idems[i]);
	memmove(s->idems, s->idems + n, (s->n_idems - n) * sizeof(*s->idems));
	s->n_idems -= n;
}

void idem_add(struct core *c, const struct submit *spec, int64_t job, int64_t now)
{
	struct state *s = &c->owned;
	size_t eighth = s->n_idems / 8;
	struct idem *i;

	if (!spec->idempotency_key)
		return;
	if (s->n_idems >= MO_IDEMS_MAX ||
	    (eighth && s->idems[eighth].time + MO_IDEM_RETAINED_US < now)) {
		drop_oldest(s, eighth);
		idems_reindex(c);
	}
	i = MO_ADD(s, idems, &idem_desc);
	i->caller = mo_strdup(spec->user);
	i->key = mo_strdup(spec->idempotency_key);
	i->digest = mo_strdup(spec->digest);
	i->job = job;
	i->time = now;
	i->hash = hash_of(i->caller, i->key);
	if (s->n_idems > c->n_idem_heads)
		idems_reindex(c);
	else
		link_in(c, s->n_idems - 1);
}
