/* What a job that left gives back: memory of its GPUs, and the driver's list of its processes. The
 * driver does that some time after the processes have ended, and sometimes never; the next job
 * would fail for want of memory. Checks with `settle` say what it is and how long it may take. What
 * cannot be read is no evidence: it holds nothing up. */
#include <string.h>

#include "agent/core/health/health_state.h"

/* a probe that was due when the time was over has its answer by then, or will have none */
#define LATE_US 10000000LL

static bool settling(const struct health_check *c)
{
	return c->settle_us > 0;
}

bool health_settles(const struct object *o, const struct health_check *c, int64_t now)
{
	return settling(c) && o->freed_at != MO_NONE && now < o->freed_at + c->settle_us;
}

static bool found(const struct verdict *v)
{
	return v->state == CHECK_CRIT || v->bad > 0;
}

void health_taken(struct object *o)
{
	for (size_t i = 0; i < o->n_verdicts; i++)
		o->verdicts[i].before = found(&o->verdicts[i]);
}

static bool has_slot(const struct object *o, const int64_t *slots, size_t n)
{
	for (size_t i = 0; i < o->n_slots; i++)
		for (size_t k = 0; k < n; k++)
			if (o->slots[i] == slots[k])
				return true;
	return false;
}

/* Its word of now: an older one may be out of date. */
static enum health_release ask_now(struct object *o, int64_t now)
{
	if (!o->under_way)
		o->next = MO_MIN(o->next, now);
	return RELEASE_WAITS;
}

static enum health_release of_check(struct object *o, const struct verdict *v, int64_t since,
				    int64_t now, char **ret)
{
	int64_t over = o->freed_at + v->check->settle_us;

	if (!settling(v->check) || v->before || !found(v) || now >= MO_MAX(over, since) + LATE_US)
		return RELEASE_DONE;
	if (v->state != CHECK_CRIT || o->full_at < since) {
		*ret = mo_printf("GPU %s: %s", o->name, v->check->what);
		return v->state == CHECK_CRIT ? ask_now(o, now) : RELEASE_WAITS;
	}
	*ret = mo_printf("GPU %s, %lld s after the job before it left: %s", o->name,
			 (long long)((now - o->freed_at) / 1000000), v->text);
	return RELEASE_NOT;
}

static enum health_release of_object(const struct health *h, struct object *o, int64_t since,
				     int64_t now, char **ret)
{
	bool any = false;

	if (o->busy || o->freed_at == MO_NONE || health_blocked(o))
		return RELEASE_DONE;
	for (size_t i = 0; i < o->n_verdicts; i++)
		any |= settling(o->verdicts[i].check) && health_applies(h, o->verdicts[i].check);
	if (any && (o->full_at == MO_NONE || o->full_at < o->freed_at)) {
		*ret = mo_printf("GPU %s: not looked at yet after the job before it", o->name);
		return ask_now(o, now);
	}
	for (size_t i = 0; any && i < o->n_verdicts; i++) {
		enum health_release r = health_applies(h, o->verdicts[i].check)
						? of_check(o, &o->verdicts[i], since, now, ret)
						: RELEASE_DONE;
		if (r != RELEASE_DONE)
			return r;
	}
	return RELEASE_DONE;
}

enum health_release health_release(struct health *h, const int64_t *slots, size_t n, int64_t since,
				   int64_t now, char **ret)
{
	enum health_release worst = RELEASE_DONE;

	*ret = NULL;
	for (size_t i = 0; i < h->n_objects; i++) {
		struct object *o = h->objects[i];
		_cleanup_(mo_freep) char *text = NULL;
		enum health_release r = o->area == PROBE_GPU && has_slot(o, slots, n)
						? of_object(h, o, since, now, &text)
						: RELEASE_DONE;
		if (r <= worst)
			continue;
		worst = r;
		free(*ret);
		*ret = TAKE_PTR(text);
	}
	return worst;
}
