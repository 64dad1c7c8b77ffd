/* The agent's decisions about the steps of its node. Called by moe-agent and by the simulator.
 *
 *   a launch:  command -> spool (durable) -> fence (durable) -> its GPUs are given back by whom
 *              they had before (where they are not: refused) -> start stepd -> its notes are
 *              forwarded until acknowledged -> forget on order
 *   adoption:  spool entry found -> other boot: forgotten (the boot id is the proof)
 *                                -> lock held: stepd lives, wait for it; silent: hung, reported,
 *                                never killed
 *                                -> lock free, journal ends with gone: forward
 *                                -> lock free, journal begun: sweep, write the last notes, forward
 *                                -> lock free, journal empty: sweep, then start only if the
 *                                launch is repeated
 *
 * Invariants: nothing is started without a durable spool entry; an attempt at or below the fence
 * without its entry is never started; an entry goes only after its gone note was acknowledged
 * (or on a new boot); a refusal makes nothing durable. Everything is idempotent: commands are
 * repeated by the controller. */
#include "agent/core/agent/agent_answers.h"
#include "agent/core/agent/agent_command.h"
#include "agent/core/agent/agent_fence.h"
#include "agent/core/agent/agent_life.h"
#include "agent/core/agent/agent_steps.h"
#include "agent/core/agent/images.h"
#include "agent/core/agent/link.h"
#include "lib/base/assert.h"

/* above the beat: a held sync comes back after a beat at the latest */
#define ANSWER_SLACK_US 5000000LL
struct agent_core *agent_core_new(const char *node, const char *boot_id, const char *instance)
{
	struct agent_core *s = mo_alloc(sizeof(*s));

	s->node = mo_strdup(node);
	s->boot_id = mo_strdup(boot_id);
	s->instance = mo_strdup(instance);
	s->backoff_us = BACKOFF_MIN_US;
	s->beat_us = MO_BEAT_MS * 1000LL;
	s->sync_due = INT64_MAX;
	s->jitter = 2166136261u;
	for (const char *p = instance; p && *p; p++)
		s->jitter = (s->jitter ^ (uint8_t)*p) * 16777619u;
	return s;
}

struct agent_core *agent_core_free(struct agent_core *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n_steps; i++)
		agent_step_free(s->steps[i]);
	for (size_t i = 0; i < s->n_scans; i++)
		mo_desc_done(&scan_result_desc, &s->scans[i].result);
	free(s->steps);
	free(s->scans);
	free(s->fence);
	agent_core_images_done(s);
	free(s->node);
	free(s->boot_id);
	free(s->instance);
	free(s);
	return NULL;
}

void agent_out_done(struct agent_out *out)
{
	for (size_t i = 0; i < out->n_effects; i++) {
		mo_desc_free(&command_desc, out->effects[i].command);
		mo_desc_free(&note_desc, out->effects[i].note);
	}
	free(out->effects);
	*out = (struct agent_out){ 0 };
}

int64_t agent_core_through(const struct agent_core *s, int64_t job, int64_t attempt)
{
	const struct agent_step *e = agent_core_find(s, job, attempt);

	return e ? e->through : 0;
}

static void on_tick(struct agent_core *s, int64_t now, struct agent_out *out)
{
	if (s->link == LINK_WAIT && now >= s->link_at)
		agent_core_say_hello(s, now, out);
	else if (s->link == LINK_HELLO && now >= s->link_at)
		agent_core_hello_late(s, now);
	else if (s->sync_out && now >= s->sync_sent + s->beat_us + ANSWER_SLACK_US)
		agent_core_lose_link(s, now, 0);
	if (s->urgent_out && now >= s->urgent_sent + ANSWER_SLACK_US)
		s->urgent_out = false;
	if (s->link == LINK_UP && now >= s->sync_due)
		agent_core_send_sync(s, now, out);
	agent_core_images_tick(s, now, out);
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->phase == AS_WRITING && now >= s->steps[i]->retry_at)
			agent_step_write_last(s->steps[i], now, out);
}

void agent_core_decide(struct agent_core *s, const struct agent_event *e, int64_t now_us,
		       struct agent_out *out)
{
	assert(e->type >= 0 && e->type < _AE_N);
	switch (e->type) {
	case AE_SPOOLED_STEP: agent_core_on_spooled(s, e, out); break;
	case AE_FENCE:
		s->epoch = MO_MAX(s->epoch, e->epoch);
		if (e->job > 0)
			agent_core_raise_fence(s, e->job, e->attempt);
		break;
	case AE_STARTED: agent_core_on_started(s, now_us, out); break;
	case AE_WELCOME: agent_core_on_welcome(s, e->welcome, now_us, out); break;
	case AE_REPLY: agent_core_on_reply(s, e, now_us, out); break;
	case AE_SCANNED: agent_core_scanned(s, e->scan, now_us, out); break;
	case AE_IMAGE: agent_core_image_news(s, e, now_us, out); break;
	case AE_CHECKED: agent_core_checked(s, now_us, out); break;
	case AE_NO_ANSWER: agent_core_on_no_answer(s, e, now_us); break;
	case AE_TICK: on_tick(s, now_us, out); break;
	default: agent_core_on_step(s, e, now_us, out); break;
	}
}

int64_t agent_core_deadline(const struct agent_core *s)
{
	int64_t d = INT64_MAX;

	if (s->link == LINK_WAIT || s->link == LINK_HELLO)
		d = s->link_at;
	if (s->link == LINK_UP)
		d = s->sync_out ? s->sync_sent + s->beat_us + ANSWER_SLACK_US : s->sync_due;
	d = MO_MIN(d, agent_core_images_deadline(s));
	if (s->urgent_out)
		d = MO_MIN(d, s->urgent_sent + ANSWER_SLACK_US);
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->phase == AS_WRITING)
			d = MO_MIN(d, s->steps[i]->retry_at);
	return d;
}
