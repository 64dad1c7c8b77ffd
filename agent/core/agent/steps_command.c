/* Commands of the controller to the agent's core. They come again until they are answered, so each
 * is carried out once; what is out of date is refused from memory, and a refusal makes nothing
 * durable. */
#include "agent/core/agent/steps_state.h"

#include <string.h>

#define QUERY_AGAIN_US 5000000

void steps_refuse(struct steps *s, int64_t job, int64_t attempt, const char *cause,
		  const char *text)
{
	struct entry *e = steps_add(s, job, attempt, NULL, EN_REFUSED);
	struct note n;

	mo_desc_init(&note_desc, &n);
	n.n = 1;
	n.kind = NOTE_REFUSED;
	n.cause = mo_strdup(cause);
	n.text = mo_strdup(text);
	entry_note(e, &n);
	mo_desc_done(&note_desc, &n);
	n.n = 2;
	n.kind = NOTE_GONE;
	n.text = mo_strdup("nothing was started");
	entry_note(e, &n);
	mo_desc_done(&note_desc, &n);
}

static void on_launch(struct steps *s, const struct command *c, struct steps_out *out)
{
	struct entry *e = steps_find(s, c->job, c->attempt);

	if (!c->launch || c->job <= 0 || c->attempt <= 0)
		return;
	if (e) {
		if (c->epoch >= s->epoch && e->phase == EN_IDLE)
			steps_start_fenced(s, e, out);
		return;
	}
	if (s->n_entries >= STEPS_MAX)
		return;
	if (c->epoch < s->epoch || c->attempt <= steps_highest(s, c->job)) {
		_cleanup_(mo_freep) char *text =
			c->epoch < s->epoch
				? mo_printf("the order is of controller epoch %lld, this node "
					    "already obeyed epoch %lld",
					    (long long)c->epoch, (long long)s->epoch)
				: mo_printf("attempt %lld of the job was seen on this node before",
					    (long long)steps_highest(s, c->job));
		steps_refuse(s, c->job, c->attempt, "stale", text);
		return;
	}
	for (size_t i = 0; i < s->n_entries; i++)
		if (s->entries[i]->job == c->job && s->entries[i]->phase < EN_GONE) {
			_cleanup_(mo_freep) char *text =
				mo_printf("attempt %lld of the job is not gone from this node",
					  (long long)s->entries[i]->attempt);
			steps_raise_fence(s, c->job, c->attempt);
			steps_save_fence(s, c->job, out);
			steps_refuse(s, c->job, c->attempt, "busy", text);
			return;
		}
	steps_raise_fence(s, c->job, c->attempt);
	steps_add(s, c->job, c->attempt, c->launch, EN_SPOOLING);
	steps_effect(out, AX_SPOOL, c->job, c->attempt)->command = mo_desc_dup(&command_desc, c);
}

static void on_stop(struct steps *s, const struct command *c, int64_t now, struct steps_out *out)
{
	struct entry *e = steps_find(s, c->job, c->attempt);

	if (c->epoch < s->epoch)
		return;
	if (!e) {
		/* Never launched here, or its launch is still on its way: it must not start any
		 * more. */
		if (c->job <= 0 || c->attempt <= 0 || s->n_entries >= STEPS_MAX)
			return;
		steps_raise_fence(s, c->job, c->attempt);
		steps_save_fence(s, c->job, out);
		steps_refuse(s, c->job, c->attempt, "stale", "this node has no such step");
		return;
	}
	if (c->kind == CMD_KILL) {
		if (!e->kill)
			e->told_at = MO_NONE;
		e->kill = true;
	} else {
		e->stop = true;
		e->signal = c->signal;
		e->grace_us = c->grace_us;
	}
	steps_tell(e, now, out);
}

static void on_forget(struct steps *s, const struct command *c, struct steps_out *out)
{
	struct entry *e = steps_find(s, c->job, c->attempt);

	/* A late copy of an old launch is refused from memory; the controller knows the end of that
	 * step already and never asks for those notes. */
	bool refused = e && e->phase == EN_REFUSED;

	if (!e || c->epoch < s->epoch ||
	    (!refused && (e->phase != EN_GONE || !e->known || e->through < e->written)))
		return;
	if (!refused)
		steps_effect(out, AX_FORGET, e->job, e->attempt);
	steps_drop(s, e);
}

static void on_scan(struct steps *s, const struct command *c, struct steps_out *out)
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
	*scan = (struct scan){ .job = c->job, .order = c->order, .id = c->id, .wanted = true };
	mo_desc_init(&scan_result_desc, &scan->result);
	steps_effect(out, AX_SCAN, c->job, c->attempt)->command = mo_desc_dup(&command_desc, c);
}

void steps_drop_scan(struct steps *s, size_t i)
{
	mo_desc_done(&scan_result_desc, &s->scans[i].result);
	memmove(&s->scans[i], &s->scans[i + 1], (s->n_scans - i - 1) * sizeof(*s->scans));
	s->n_scans--;
}

/* An attempt waits for it: not until the next beat. */
void steps_scanned(struct steps *s, const struct scan_result *result, int64_t now,
		   struct steps_out *out)
{
	for (size_t i = 0; i < s->n_scans; i++) {
		struct scan *scan = &s->scans[i];
		if (scan->job != result->job || scan->order != result->order ||
		    scan->id != result->id || scan->done)
			continue;
		if (!scan->wanted) {
			steps_drop_scan(s, i);
			return;
		}
		scan->done = true;
		mo_desc_copy(&scan_result_desc, &scan->result, result);
		scan_result_fit(&scan->result);
		steps_send_news(s, now, out);
		return;
	}
}

/* A job waits for what the checks found: not until the next beat either. */
void steps_checked(struct steps *s, int64_t now, struct steps_out *out)
{
	s->checked = true;
	steps_send_news(s, now, out);
}

static void on_query(struct steps *s, const struct command *c, int64_t now, struct steps_out *out)
{
	for (size_t i = 0; i < QUERIES_MAX; i++)
		if (s->queries[i].id == c->query && s->queries[i].at &&
		    now < s->queries[i].at + QUERY_AGAIN_US)
			return;
	s->queries[s->next_query++ % QUERIES_MAX] =
		(struct query){ .id = c->query, .at = MO_MAX(now, 1) };
	steps_effect(out, AX_QUERY, c->job, c->attempt)->command = mo_desc_dup(&command_desc, c);
}

void steps_command(struct steps *s, const struct command *c, int64_t now, struct steps_out *out)
{
	if (!mo_streq(c->node, s->node) || (c->boot_id && !mo_streq(c->boot_id, s->boot_id)))
		return;
	steps_learn_epoch(s, c->epoch, out);
	switch (c->kind) {
	case CMD_LAUNCH: on_launch(s, c, out); break;
	case CMD_STOP:
	case CMD_KILL: on_stop(s, c, now, out); break;
	case CMD_FORGET: on_forget(s, c, out); break;
	case CMD_SCAN: on_scan(s, c, out); break;
	case CMD_QUERY: on_query(s, c, now, out); break;
	}
}
