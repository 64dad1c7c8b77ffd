/* What a job that left gives back: memory of its GPUs, and the driver's list of its processes. The
 * driver does that some time after the processes have ended, and sometimes never; the next job
 * would fail for want of memory. Checks with `settle` say what it is and how long it may take. What
 * cannot be read is no evidence: it holds nothing up. */
#include <string.h>

#include "agent/core/health/health_state.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"

/* a probe that was due when the time was over has its answer by then, or will have none: nothing is
 * waited for any longer */
#define LATE_US 10000000LL
#define FOUND_BYTES_MAX 1000

bool health_settles(const struct object *o, const struct health_check *c, int64_t now)
{
	return o->freed_at != MO_NONE && now < o->freed_at + c->settle_us;
}

void health_note(struct verdict *v, const struct finding *f)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!v->check->settle_us || f->state < 0)
		return;
	if (f->state == CHECK_CRIT) {
		mo_buf_printf(&b, "%.*s", mo_utf8_shown(f->text, FOUND_BYTES_MAX), f->text);
		for (size_t i = 0; i < f->n_evidence && b.len < FOUND_BYTES_MAX; i++)
			mo_buf_printf(&b, "%s%s", i ? ", " : " (", f->evidence[i]);
		if (f->n_evidence)
			mo_buf_str(&b, ")");
	}
	mo_str_set(&v->found, b.data);
}

void health_program_left(struct health *h, const struct health_check *c, int64_t now)
{
	if (!health_loads(c))
		return;
	for (size_t i = 0; i < h->n_objects; i++)
		if (h->objects[i]->area == PROBE_GPU) {
			h->objects[i]->freed_at = now;
			h->objects[i]->next = MO_MIN(h->objects[i]->next, now);
		}
}

void health_taken(struct object *o)
{
	for (size_t i = 0; i < o->n_verdicts; i++)
		o->verdicts[i].known = o->verdicts[i].found || o->verdicts[i].state == CHECK_CRIT;
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

static enum health_release of_check(struct object *o, struct verdict *v, int64_t since, int64_t now,
				    char **ret)
{
	int64_t over = o->freed_at + v->check->settle_us, last = MO_MAX(over, since);

	if (now >= last + LATE_US)
		return RELEASE_DONE;
	if (o->full_at == MO_NONE || o->full_at < o->freed_at) {
		*ret = mo_printf("GPU %s: not looked at yet since its last job", o->name);
		return ask_now(o, now);
	}
	if (v->known || !v->found)
		return RELEASE_DONE;
	if (v->state == CHECK_CRIT && o->full_at >= last) {
		v->known = true;
		*ret = mo_printf("GPU %s is not given back after %lld s: %s", o->name,
				 (long long)(v->check->settle_us / 1000000), v->found);
		return RELEASE_NOT;
	}
	*ret = mo_printf("GPU %s: %s", o->name, v->found);
	return now < over ? RELEASE_WAITS : ask_now(o, now);
}

static enum health_release of_object(const struct health *h, struct object *o, int64_t since,
				     int64_t now, char **ret)
{
	enum health_release worst = RELEASE_DONE;

	if (o->busy || o->freed_at == MO_NONE || o->silent || health_blocked(o))
		return RELEASE_DONE;
	for (size_t i = 0; i < o->n_verdicts && worst == RELEASE_DONE; i++) {
		struct verdict *v = &o->verdicts[i];

		if (v->check->settle_us && health_applies(h, v->check))
			worst = of_check(o, v, since, now, ret);
	}
	return worst;
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
