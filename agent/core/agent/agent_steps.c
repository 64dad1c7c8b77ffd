/* See agent_steps.h. */
#include "agent/core/agent/agent_steps.h"

#include <string.h>

#include "lib/base/assert.h"

struct agent_step *agent_core_find(const struct agent_core *s, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->job == job && s->steps[i]->attempt == attempt)
			return s->steps[i];
	return NULL;
}

struct agent_step *agent_core_add(struct agent_core *s, int64_t job, int64_t attempt,
				  const struct launch *l, enum agent_step_phase phase)
{
	struct agent_step **slot;

	mo_assert(!agent_core_find(s, job, attempt)); /* a step is launched once */
	slot = MO_GROW(s->steps, s->n_steps);
	*slot = agent_step_new(job, attempt, l);
	(*slot)->phase = phase;
	return *slot;
}

void agent_core_drop(struct agent_core *s, struct agent_step *e)
{
	mo_assert(s->n_steps > 0);
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i] == e) {
			memmove(&s->steps[i], &s->steps[i + 1],
				(s->n_steps - i - 1) * sizeof(*s->steps));
			s->n_steps--;
			break;
		}
	agent_step_free(e);
}

void agent_core_refuse(struct agent_core *s, int64_t job, int64_t attempt, const char *cause,
		       const char *text)
{
	struct agent_step *e = agent_core_add(s, job, attempt, NULL, AS_REFUSED);
	struct note n;

	mo_desc_init(&note_desc, &n);
	n.n = 1;
	n.kind = NOTE_REFUSED;
	n.cause = mo_strdup(cause);
	n.text = mo_strdup(text);
	agent_step_note(e, &n);
	mo_desc_done(&note_desc, &n);
	n.n = 2;
	n.kind = NOTE_GONE;
	n.text = mo_strdup("nothing was started");
	agent_step_note(e, &n);
	mo_desc_done(&note_desc, &n);
}
