/* Steps that wait until the jobs before them have given back their GPUs (AX_RELEASE). What is read
 * and what it means is the health's (health.c, agent/core/health/health_release.c): probes run from
 * the end of the step before, so that who comes later than their answer does not wait at all. */
#include "agent/release.h"

#include "agent/health.h"
#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

struct ask {
	int64_t job, attempt, since;
	char *said;
};
struct releases {
	struct manager *m;
	struct ask *asks;
	size_t n_asks;
};

struct releases *releases_new(struct manager *m)
{
	struct releases *r = mo_alloc(sizeof(*r));

	r->m = m;
	return r;
}

struct releases *releases_free(struct releases *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->n_asks; i++)
		free(r->asks[i].said);
	free(r->asks);
	free(r);
	return NULL;
}

static void answer(struct releases *r, const struct ask *a, int type, bool ok, char *text)
{
	queue_event(r->m, &(struct agent_event){ .type = type,
						 .job = a->job,
						 .attempt = a->attempt,
						 .ok = ok,
						 .text = text });
}

static void tell(struct releases *r, struct ask *a, const char *text)
{
	struct mo_log_where w = {
		.job = a->job, .attempt = a->attempt, .rank = -1, .node = r->m->config->node
	};

	if (mo_streq(a->said, text))
		return;
	mo_str_set(&a->said, text);
	mo_log(MO_NOTICE, NULL, &w, "step j-%lld attempt %lld waits: %s", (long long)a->job,
	       (long long)a->attempt, text);
	answer(r, a, AE_HELD, false, mo_strdup(text));
}

/* False: it waits. */
static bool look(struct releases *r, struct ask *a)
{
	struct step_dir *d = step_dir_find(r->m, a->job, a->attempt);
	_cleanup_(mo_freep) char *text = NULL;

	if (!d || !d->held || d->gone || d->forgotten)
		return true;
	enum health_release state = watch_release(r->m->watch, d->spool.launch.gpus,
						  d->spool.launch.n_gpus, a->since, &text);
	if (state == RELEASE_WAITS) {
		tell(r, a, text);
		return false;
	}
	d->held = false;
	answer(r, a, AE_RELEASED, state == RELEASE_DONE, TAKE_PTR(text));
	return true;
}

void release_ask(struct releases *r, struct step_dir *d)
{
	struct ask a = { .job = d->job, .attempt = d->attempt, .since = mo_clock_boot_us() };

	/* the health is to know who left in this very turn, and that this one has nothing yet */
	d->held = true;
	watch_steps(r->m->watch);
	if (look(r, &a))
		free(a.said);
	else
		*MO_GROW(r->asks, r->n_asks) = a;
}

void releases_look(struct releases *r)
{
	for (size_t i = r->n_asks; i-- > 0;) {
		if (!look(r, &r->asks[i]))
			continue;
		free(r->asks[i].said);
		r->asks[i] = r->asks[--r->n_asks];
	}
}
