/* The fence: the highest attempt of each job, and the highest controller epoch, that this node has
 * seen. It is durable before anything is started, so an attempt at or below it without a spool
 * entry is never started. */
#include "agent/core/agent/agent_fence.h"
#include "agent/core/agent/link.h"

#include <string.h>

#include "lib/base/assert.h"

int64_t agent_core_highest(const struct agent_core *s, int64_t job)
{
	for (size_t i = 0; i < s->n_fence; i++)
		if (s->fence[i].job == job)
			return s->fence[i].attempt;
	return 0;
}

void agent_core_raise_fence(struct agent_core *s, int64_t job, int64_t attempt)
{
	attempt = MO_MAX(attempt, agent_core_highest(s, job));
	for (size_t i = 0; i < s->n_fence; i++)
		if (s->fence[i].job == job) {
			memmove(&s->fence[i], &s->fence[i + 1],
				(s->n_fence - i - 1) * sizeof(*s->fence));
			s->n_fence--;
			break;
		}
	if (s->n_fence == FENCE_JOBS_MAX)
		memmove(s->fence, s->fence + 1, --s->n_fence * sizeof(*s->fence));
	struct highest *h = MO_GROW(s->fence, s->n_fence);
	*h = (struct highest){ .job = job, .attempt = attempt };
	mo_assert(h->attempt >= attempt && s->n_fence <= FENCE_JOBS_MAX);
}

void agent_core_save_fence(const struct agent_core *s, int64_t job, struct agent_out *out)
{
	agent_effect(out, AX_FENCE, job, job ? agent_core_highest(s, job) : 0)->epoch = s->epoch;
}

void agent_core_learn_epoch(struct agent_core *s, int64_t epoch, struct agent_out *out)
{
	if (epoch <= s->epoch)
		return;
	s->epoch = epoch;
	agent_core_save_fence(s, 0, out);
	mo_assert(s->epoch == epoch);
}
