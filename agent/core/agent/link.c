/* The agent's way to the controller: one hello, then one sync after the other, and urgent messages
 * beside it for what is urgent. Called by agent_core.c. */
#include "agent/core/agent/link.h"
#include "agent/core/agent/agent_steps.h"
#include "agent/core/agent/images.h"
#include "agent/core/stepd/stepd_core.h"
#include "lib/base/assert.h"

/* below the 2 beats after which silence makes a node suspect */
#define BACKOFF_MAX_US 1000000
#define HELLO_MIN_US 2000000LL /* patience with a hello: what a lost one costs; */
/* a controller that is late is asked less and less often, so that it can catch up */
#define HELLO_MAX_US 10000000LL
/* who is asked to come later is asked together with many, and comes within a second more */
#define ASKED_SPREAD_US 1000000LL

struct agent_effect *agent_effect(struct agent_out *out, int type, int64_t job, int64_t attempt)
{
	struct agent_effect *x = MO_GROW(out->effects, out->n_effects);

	x->type = type;
	x->job = job;
	x->attempt = attempt;
	return x;
}

void agent_core_send_urgent(struct agent_core *s, int64_t now, struct agent_out *out)
{
	if (s->link != LINK_UP)
		/* the first sync after the welcome carries everything */
		return;
	if (s->urgent_out) {
		s->urgent_again = true;
		return;
	}
	mo_assert(!s->urgent_out);
	s->urgent_out = true;
	s->urgent_again = false;
	s->urgent_sent = now;
	agent_effect(out, AX_SEND_URGENT, 0, 0);
}

bool agent_core_has_urgent(const struct agent_core *s)
{
	for (size_t i = 0; i < s->n_steps; i++)
		for (size_t k = 0; k < s->steps[i]->n_notes; k++)
			if (note_urgent(&s->steps[i]->notes[k]))
				return true;
	for (size_t i = 0; i < s->n_scans; i++)
		if (s->scans[i].done && !s->scans[i].sent)
			return true;
	return s->checked || agent_core_images_urgent(s);
}

void agent_core_send_sync(struct agent_core *s, int64_t now, struct agent_out *out)
{
	mo_assert(s->link == LINK_UP && !s->sync_out); /* one after the other */
	s->sync_out = true;
	s->sync_sent = now;
	s->sync_due = INT64_MAX;
	agent_effect(out, AX_SYNC, 0, 0);
}

void agent_core_say_hello(struct agent_core *s, int64_t now, struct agent_out *out)
{
	s->link = LINK_HELLO;
	s->hello_us = MO_MAX(s->hello_us, HELLO_MIN_US);
	s->link_at = now + s->hello_us;
	agent_effect(out, AX_HELLO, 0, 0);
	mo_assert(s->hello_us >= HELLO_MIN_US && s->hello_us <= HELLO_MAX_US);
}

void agent_core_hello_late(struct agent_core *s, int64_t now)
{
	s->hello_us = MO_MIN(s->hello_us * 2, HELLO_MAX_US);
	agent_core_lose_link(s, now, 0);
}

void agent_core_lose_link(struct agent_core *s, int64_t now, int64_t after_us)
{
	bool asked = after_us > 0;
	int64_t wait, spread;

	if (s->link == LINK_OFF || s->link == LINK_WAIT)
		return;
	s->jitter = s->jitter * 1664525u + 1013904223u;
	s->link = LINK_WAIT;
	/* many agents must not come back in step */
	wait = asked ? MO_MIN(after_us, HELLO_MAX_US) : s->backoff_us;
	spread = asked ? ASKED_SPREAD_US : s->backoff_us / 4;
	s->link_at = now + wait + (int64_t)(s->jitter >> 8) % spread;
	if (!asked)
		s->backoff_us = MO_MIN(s->backoff_us * 2, BACKOFF_MAX_US);
	s->sync_out = s->urgent_out = s->urgent_again = false;
	s->sync_due = INT64_MAX;
	mo_assert(s->backoff_us > 0 && s->backoff_us <= BACKOFF_MAX_US);
}
