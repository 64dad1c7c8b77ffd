/* Commands of the controller to the agent's core. They come again until they are answered, so each
 * is carried out once; what is out of date is refused from memory, and a refusal makes nothing
 * durable. */
#include "agent/core/agent/agent_command.h"
#include "agent/core/agent/agent_fence.h"
#include "agent/core/agent/agent_life.h"
#include "agent/core/agent/agent_steps.h"
#include "agent/core/agent/images.h"
#include "agent/core/agent/link.h"

#include <string.h>

#define QUERY_AGAIN_US 5000000

static void on_launch(struct agent_core *s, const struct command *c, struct agent_out *out)
{
	struct agent_step *e = agent_core_find(s, c->job, c->attempt);

	if (!c->launch || c->job <= 0 || c->attempt <= 0)
		return;
	if (e) {
		if (c->epoch >= s->epoch && e->phase == AS_IDLE)
			agent_core_start_fenced(s, e, out);
		return;
	}
	if (s->n_steps >= STEPS_MAX)
		return;
	if (c->epoch < s->epoch || c->attempt <= agent_core_highest(s, c->job)) {
		_cleanup_(mo_freep) char *text =
			c->epoch < s->epoch
				? mo_printf("the order is of controller epoch %lld, this node "
					    "already obeyed epoch %lld",
					    (long long)c->epoch, (long long)s->epoch)
				: mo_printf("attempt %lld of the job was seen on this node before",
					    (long long)agent_core_highest(s, c->job));
		agent_core_refuse(s, c->job, c->attempt, "stale", text);
		return;
	}
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->job == c->job && s->steps[i]->phase < AS_GONE) {
			_cleanup_(mo_freep) char *text =
				mo_printf("attempt %lld of the job is not gone from this node",
					  (long long)s->steps[i]->attempt);
			agent_core_raise_fence(s, c->job, c->attempt);
			agent_core_save_fence(s, c->job, out);
			agent_core_refuse(s, c->job, c->attempt, "busy", text);
			return;
		}
	agent_core_raise_fence(s, c->job, c->attempt);
	agent_core_add(s, c->job, c->attempt, c->launch, AS_SPOOLING);
	agent_effect(out, AX_SPOOL, c->job, c->attempt)->command = mo_desc_dup(&command_desc, c);
}

static void on_stop(struct agent_core *s, const struct command *c, int64_t now,
		    struct agent_out *out)
{
	struct agent_step *e = agent_core_find(s, c->job, c->attempt);

	if (c->epoch < s->epoch)
		return;
	if (!e) {
		/* Never launched here, or its launch is still on its way: it must not start any
		 * more. */
		if (c->job <= 0 || c->attempt <= 0 || s->n_steps >= STEPS_MAX)
			return;
		agent_core_raise_fence(s, c->job, c->attempt);
		agent_core_save_fence(s, c->job, out);
		agent_core_refuse(s, c->job, c->attempt, "stale", "this node has no such step");
		return;
	}
	if (c->kind == CMD_KILL) {
		if (!e->kill)
			e->ordered_at = MO_NONE;
		e->kill = true;
	} else {
		e->stop = true;
		e->signal = c->signal;
		e->grace_us = c->grace_us;
	}
	agent_step_order(e, now, out);
}

static void on_forget(struct agent_core *s, const struct command *c, struct agent_out *out)
{
	struct agent_step *e = agent_core_find(s, c->job, c->attempt);

	/* A late copy of an old launch is refused from memory; the controller knows the end of that
	 * step already and never asks for those notes. */
	bool refused = e && e->phase == AS_REFUSED;

	if (!e || c->epoch < s->epoch ||
	    (!refused && (e->phase != AS_GONE || !e->known || e->through < e->written)))
		return;
	if (!refused)
		agent_effect(out, AX_FORGET, e->job, e->attempt);
	agent_core_drop(s, e);
}

static void on_scan(struct agent_core *s, const struct command *c, int64_t now,
		    struct agent_out *out)
{
	if (c->epoch < s->epoch || !c->dir || c->order < 0)
		return;
	for (size_t i = 0; i < s->n_scans; i++)
		if (s->scans[i].job == c->job && s->scans[i].order == c->order &&
		    s->scans[i].id == c->id) {
			s->scans[i].wanted = true;
			return;
		}
	if (s->n_scans >= SCANS_MAX)
		return;
	struct scan *scan = MO_GROW(s->scans, s->n_scans);
	*scan = (struct scan){
		.job = c->job, .order = c->order, .id = c->id, .wanted = true, .began = now
	};
	mo_desc_init(&scan_result_desc, &scan->result);
	agent_effect(out, AX_SCAN, c->job, c->attempt)->command = mo_desc_dup(&command_desc, c);
}

void agent_core_drop_scan(struct agent_core *s, size_t i)
{
	mo_desc_done(&scan_result_desc, &s->scans[i].result);
	memmove(&s->scans[i], &s->scans[i + 1], (s->n_scans - i - 1) * sizeof(*s->scans));
	s->n_scans--;
}

/* An attempt waits for it: not until the next beat. */
void agent_core_scanned(struct agent_core *s, const struct scan_result *result, int64_t now,
			struct agent_out *out)
{
	for (size_t i = 0; i < s->n_scans; i++) {
		struct scan *scan = &s->scans[i];
		if (scan->job != result->job || scan->order != result->order ||
		    scan->id != result->id || scan->done)
			continue;
		if (!scan->wanted) {
			agent_core_drop_scan(s, i);
			return;
		}
		scan->done = true;
		mo_desc_copy(&scan_result_desc, &scan->result, result);
		scan_result_fit(&scan->result);
		agent_core_send_urgent(s, now, out);
		return;
	}
}

/* A job waits for what the checks found: not until the next beat either. */
void agent_core_checked(struct agent_core *s, int64_t now, struct agent_out *out)
{
	s->checked = true;
	agent_core_send_urgent(s, now, out);
}

static void on_query(struct agent_core *s, const struct command *c, int64_t now,
		     struct agent_out *out)
{
	for (size_t i = 0; i < QUERIES_MAX; i++)
		if (s->queries[i].id == c->query && s->queries[i].at &&
		    now < s->queries[i].at + QUERY_AGAIN_US)
			return;
	s->queries[s->next_query++ % QUERIES_MAX] =
		(struct query){ .id = c->query, .at = MO_MAX(now, 1) };
	agent_effect(out, AX_QUERY, c->job, c->attempt)->command = mo_desc_dup(&command_desc, c);
}

void agent_core_command(struct agent_core *s, const struct command *c, int64_t now,
			struct agent_out *out)
{
	if (!mo_streq(c->node, s->node) || (c->boot_id && !mo_streq(c->boot_id, s->boot_id)))
		return;
	agent_core_learn_epoch(s, c->epoch, out);
	switch (c->kind) {
	case CMD_LAUNCH: on_launch(s, c, out); break;
	case CMD_STOP:
	case CMD_KILL: on_stop(s, c, now, out); break;
	case CMD_FORGET: on_forget(s, c, out); break;
	case CMD_SCAN: on_scan(s, c, now, out); break;
	case CMD_IMAGE: agent_core_image(s, c, now, out); break;
	case CMD_QUERY: on_query(s, c, now, out); break;
	case CMD_MOTION: agent_core_motion(s, c, now, out); break;
	}
}
