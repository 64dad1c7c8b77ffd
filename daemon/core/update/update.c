/* The only place that changes the state: one function per record type, in one table, under
 * core_update().
 *
 * It is called by turn_emit() at the first time, by the shell's replay at a start, by quarantine,
 * simulator and fuzzers: the same code each time, so it reads nothing but the record and the
 * state before it. No clock (the record has its time), no configuration that may differ at the
 * next start, no `struct live` that decides. It also keeps true what is derived: the indexes of
 * struct core, the counts of jobs, which nodes and jobs the rules must visit.
 *
 * What never happens: a decision (rules make it, the record says it), an event or reply, a record
 * half applied: what a function refuses (-EINVAL) it refuses before it changes anything. A record
 * of a version or content that this program does not understand is -EINVAL: the shell then
 * refuses to start rather than go on from a state that never was.
 *
 * check.h says what holds after each turn; what must hold for one function to work is asserted in
 * it. Subjects have files of their own: update_submit.c, update_job.c, update_place.c,
 * update_step.c, update_node.c, update_notes.c, update_tokens.c, update_config.c,
 * update_incarnation.c, update_history.c, measured.c. */
#include "daemon/core/update/update.h"

#include <errno.h>

#include "daemon/core/state/clock.h"
#include "daemon/core/state/live.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/measured.h"
#include "daemon/core/update/numbers.h"
#include "daemon/core/update/ring.h"
#include "daemon/core/update/slots.h"
#include "daemon/core/update/space.h"
#include "daemon/core/update/update_config.h"
#include "daemon/core/update/update_hang.h"
#include "daemon/core/update/update_history.h"
#include "daemon/core/update/update_incarnation.h"
#include "daemon/core/update/update_job.h"
#include "daemon/core/update/update_node.h"
#include "daemon/core/update/update_place.h"
#include "daemon/core/update/update_power.h"
#include "daemon/core/update/update_spare.h"
#include "daemon/core/update/update_step.h"
#include "daemon/core/update/update_straggler.h"
#include "daemon/core/update/update_submit.h"
#include "daemon/core/update/update_tokens.h"
#include "daemon/core/update/verify.h"

static int on_controller(struct core *c, const struct record *r)
{
	const struct rec_controller *k = r->controller;

	c->owned.epoch = k->epoch;
	if (c->owned.restored_jobs != MO_NONE && c->owned.restored_wait == MO_NONE)
		c->owned.restored_wait = k->restored_wait == MO_NONE ? r->time : k->restored_wait;
	for (size_t i = 0; i < c->owned.n_nodes; i++)
		c->owned.nodes[i]->agent.reconciled = false;
	slots_touch_all(c);
	c->queue_dirty = true;
	return 0;
}

static int on_scan(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);

	if (!j)
		return -EINVAL;
	switch (r->scan->order) {
	case ORDER_PRUNE: checkpoint_pruned(j, r->scan); break;
	case ORDER_VERIFY: verify_result(j, r->scan, r->time); break;
	default:
		checkpoint_scan(j, r->scan, r->time);
		numbers_inherit(&c->owned, j);
		if (!j->scan.at_end) {
			c->queue_dirty = true;
			break;
		}
		j->scan.at_end = false;
		checkpoint_removal_over(j, r->scan);
		ids_remove(c->ending, &c->n_ending, j->id);
	}
	space_measured(j, r->scan, r->time);
	return 0;
}

static int on_checkpoint(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);
	struct checkpoint *k = j ? checkpoint_edit(j, r->checkpoint->iteration) : NULL;

	if (!k)
		return -EINVAL;
	/* the next attempt loads another one: what follows is no repetition */
	if (r->checkpoint->state == CKPT_SUSPECT && k->state != CKPT_SUSPECT) {
		j->streak.same = j->streak.cycles = 0;
		mo_str_set(&j->streak.signature, NULL);
	}
	mo_desc_copy(&checkpoint_desc, k, r->checkpoint);
	return 0;
}

/* The first one stays. */
static int on_image(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);

	if (!j || !r->image->digest || j->image.digest)
		return -EINVAL;
	j->image.digest = mo_strdup(r->image->digest);
	j->image.node = mo_strdup(r->node);
	j->image.at = r->time;
	c->queue_dirty = true;
	return 0;
}

static int on_fabric(struct core *c, const struct record *r)
{
	struct job *j = record_job(&c->owned, r);

	if (!j || r->fabric->found.verdict < 0)
		return -EINVAL;
	mo_desc_free(&fabric_check_desc, j->fabric);
	j->fabric = mo_desc_dup(&fabric_check_desc, r->fabric);
	j->fabric->time = r->time;
	return 0;
}

static int on_event(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;

	if (r->event->seq < s->next_event_seq)
		return -EINVAL;
	ring_make_room(s);
	mo_desc_copy(&event_desc, MO_ADD(s, events, &event_desc), r->event);
	s->next_event_seq = r->event->seq + 1;
	return 0;
}

/* The one record after which time may be earlier than before. */
static int on_clock(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;
	const struct rec_clock *k = r->clock;

	if (k->shift_us == MO_NONE || k->boottime_us == MO_NONE)
		return -EINVAL;
	if (k->shift_us)
		clock_shift(s, k->shift_us, r->time);
	if (k->shift_us >= CLOCK_LEAP_US)
		s->clock_leapt = r->time;
	mo_str_set(&s->clock_boot_id, k->boot_id);
	s->clock_time = r->time;
	s->clock_boot = k->boottime_us;
	if (k->synchronised)
		s->clock_doubt = MO_NONE;
	else if (s->clock_doubt == MO_NONE)
		s->clock_doubt = r->time;
	s->time = r->time;
	return 0;
}

static int (*const updates[_REC_N])(struct core *c, const struct record *r) = {
	[REC_CONTROLLER] = on_controller,
	[REC_SUBMIT] = update_submit,
	[REC_JOB] = update_job,
	[REC_INTENT] = update_intent,
	[REC_SCAN] = on_scan,
	[REC_PLACE] = update_place,
	[REC_ACCEPT] = update_accept,
	[REC_NOTES] = update_step_notes,
	[REC_FAIL] = update_fail,
	[REC_GONE] = update_gone,
	[REC_FORGOTTEN] = update_forgotten,
	[REC_NODE] = update_node,
	[REC_NODE_STATE] = update_node_state,
	[REC_DRAIN] = update_drain,
	[REC_ACK] = update_ack,
	[REC_LEAVING] = update_leaving,
	[REC_STRANGE] = update_strange,
	[REC_WAIT_NODE] = update_wait_node,
	[REC_HUNG] = update_hung,
	[REC_INCIDENT] = update_incident,
	[REC_CHECKPOINT] = on_checkpoint,
	[REC_TOKEN] = update_token,
	[REC_TOKEN_REVOKED] = update_token_revoked,
	[REC_EVENT] = on_event,
	[REC_HEALTH] = update_health,
	[REC_CHECK] = update_check,
	[REC_MEASURED] = update_measured,
	[REC_CLOCK] = on_clock,
	[REC_TOKEN_USED] = update_token_used,
	[REC_NODE_TOKEN] = update_node_token,
	[REC_RESTORED] = update_restored,
	[REC_OBEYS] = update_obeys,
	[REC_DISCARD] = update_discard,
	[REC_CONFIG] = update_config,
	[REC_IMAGE] = on_image,
	[REC_POWER] = update_power,
	[REC_HANG] = update_hang,
	[REC_STRAGGLER] = update_straggler,
	[REC_HISTORY] = update_history,
	[REC_SPARE] = update_spare,
	[REC_FABRIC] = on_fabric,
};

int core_update(struct core *c, const struct record *r)
{
	int result;

	if (r->version != RECORD_VERSION || r->type < 0 || r->type >= _REC_N || !record_whole(r))
		return -EINVAL;
	result = updates[r->type](c, r);
	if (result < 0)
		return result;
	c->owned.time = MO_MAX(c->owned.time, r->time);
	slots_changed(c, r);
	if (r->job != MO_NONE && r->type != REC_EVENT)
		core_touch(c, r->job);
	return 0;
}
