/* What a restart of the agent does not forget: within one boot, and when not long ago, the
 * preflight checks that were made stay made, and their findings stay until the next probe judges
 * them again. Otherwise every upgrade of the agent would take its node from jobs until all was
 * probed once more, and findings would seem to be gone for as long. */
#include <string.h>

#include "agent/core/health/health_state.h"

/* from the last probe before; the state is written every 5 minutes at least */
#define RETAINED_US (15 * 60 * 1000000LL)

static char *object_key(const struct object *o)
{
	return mo_printf("%s %s", probe_area_names[o->area], o->name);
}

static bool has(char *const *strs, size_t n, const char *s)
{
	return s && mo_enum_parse((const char *const *)strs, n, s) >= 0;
}

void health_keep(const struct health *h, struct health_memory *ret)
{
	ret->at = h->probed_at;
	ret->preflight_done = h->reported.preflight_done;
	if (!ret->preflight_done)
		return;
	for (size_t i = 0; i < h->reported.n_results; i++)
		mo_desc_copy(&check_result_desc, MO_ADD(ret, results, &check_result_desc),
			     &h->reported.results[i]);
	for (size_t i = 0; i < h->n_objects; i++) {
		_cleanup_(mo_freep) char *key = object_key(h->objects[i]);
		mo_strs_add(&ret->objects, &ret->n_objects, key);
	}
	for (size_t i = 0; i < h->n_checks; i++)
		if (health_applies(h, &h->checks[i]))
			mo_strs_add(&ret->checks, &ret->n_checks, h->checks[i].id);
}

void health_restore(struct health *h, const struct health_memory *m, int64_t now)
{
	if (!m->preflight_done || !mo_streq(m->boot_id, h->boot_id) || m->at == MO_NONE ||
	    m->at > now || now - m->at > RETAINED_US)
		return;
	mo_desc_free(&health_memory_desc, h->retained);
	h->retained = mo_desc_dup(&health_memory_desc, m);
}

static void restore(struct verdict *v, const struct check_result *r)
{
	v->state = r->state;
	v->skipped = r->state == CHECK_UNKNOWN && r->action != v->check->action;
	v->since = r->since;
	v->at = r->at;
	v->count = r->count;
	v->text = r->text ? mo_strdup(r->text) : NULL;
	for (size_t i = 0; i < r->n_evidence && v->n_evidence < EVIDENCE_MAX; i++)
		mo_strs_add(&v->evidence, &v->n_evidence, r->evidence[i]);
	v->bad = r->state == CHECK_WARN || r->state == CHECK_CRIT ? v->check->consecutive : 0;
	v->crit = r->state == CHECK_CRIT ? v->check->consecutive : 0;
}

/* A check or a device that was not there before was not probed. */
void health_retained_apply(const struct health *h, struct object *o)
{
	const struct health_memory *m = h->retained;
	_cleanup_(mo_freep) char *key = object_key(o);

	if (!m || !has(m->objects, m->n_objects, key))
		return;
	for (size_t i = 0; i < o->n_verdicts; i++) {
		struct verdict *v = &o->verdicts[i];
		v->probed = has(m->checks, m->n_checks, v->check->id);
		for (size_t k = 0; v->probed && k < m->n_results; k++)
			if (mo_streq(m->results[k].check, v->check->id) &&
			    mo_streq(m->results[k].object, o->name) &&
			    m->results[k].state > CHECK_OK && m->results[k].state < _CHECK_STATE_N)
				restore(v, &m->results[k]);
	}
	health_taken(o);
}
