/* See webhook.h. A receiver that is away is tried at growing times for as long as it takes: what
 * leaves the ring meanwhile is counted. One that answers that it cannot take this content is not
 * tried with it again, as it would keep all later events back. */
#include "daemon/core/rules/webhook.h"

#include <fnmatch.h>

#include "daemon/core/update/ring.h"
#include "lib/base/assert.h"

#define PACE_US 1000000LL /* what happens meanwhile goes in one delivery */
#define RETRY_US (5 * 1000000LL)
#define RETRY_MOST_US (15 * 60 * 1000000LL)

const char *const webhook_result_names[] = { "delivered", "refused", "failed" };
_Static_assert(ELEMENTSOF(webhook_result_names) == _WEBHOOK_RESULT_N, "a name for each");

static bool matches(char *const *patterns, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (fnmatch(patterns[i], text, 0) == 0)
			return true;
	return false;
}

bool webhook_wants(const struct webhook *w, const struct state *s, const struct event *e)
{
	if (w->n_types && !matches(w->types, w->n_types, e->type))
		return false;
	if (!w->n_jobs)
		return true;
	const struct job *j = e->job == MO_NONE ? NULL : job_find(s, e->job);

	return j && matches(w->jobs, w->n_jobs, j->spec.recipe.name);
}

void webhook_batch(const struct webhook *w, const struct state *s, int64_t next,
		   struct webhook_batch *ret)
{
	*ret = (struct webhook_batch){ .next = MO_MAX(next, s->next_event_seq),
				       .missed = ring_gone(s, next - 1) };
	for (size_t i = ring_find(s, next); i < s->n_events; i++) {
		const struct event *e = &s->events[i];

		if (!webhook_wants(w, s, e))
			continue;
		if (ret->n == WEBHOOK_EVENTS_MAX) {
			ret->next = e->seq;
			return;
		}
		ret->events[ret->n++] = e;
	}
}

enum webhook_result webhook_judge(int64_t status)
{
	if (status >= 200 && status < 300)
		return WEBHOOK_DELIVERED;
	/* bad request, content too large, of the wrong kind, not to be processed */
	if (status == 400 || status == 413 || status == 415 || status == 422)
		return WEBHOOK_REFUSED;
	return WEBHOOK_FAILED;
}

void webhook_ended(struct webhook_pace *p, enum webhook_result result, int64_t next, int64_t now)
{
	mo_assert(next >= p->next);
	if (result != WEBHOOK_FAILED) {
		p->next = next;
		p->failures = 0;
		p->due = now + PACE_US;
		return;
	}
	int64_t wait = RETRY_US;

	for (int64_t i = 0; i < p->failures && wait < RETRY_MOST_US; i++)
		wait *= 2;
	p->failures++;
	p->due = now + MO_MIN(wait, RETRY_MOST_US);
}
