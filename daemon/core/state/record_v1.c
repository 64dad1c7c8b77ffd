/* See record_v1.h. */
#include "daemon/core/state/record_v1.h"

#include <stdlib.h>
#include <string.h>

static const struct mo_field record_v1_fields[] = {
	MO_DN(record_v1, version, "v", MO_INT, "version of the form of records: 1"),
	MO_D_ENUM(record_v1, type, record_type_names,
		  "what happened: says what the members below mean"),
	MO_DN(record_v1, time, "t", MO_INT, "when, microseconds since the epoch"),
	MO_D(record_v1, job, MO_INT, "number of the job that it is about; unset: of none",
	     .omit = true),
	MO_D(record_v1, attempt, MO_INT, "number of the attempt that it is about; unset: of none",
	     .omit = true),
	MO_D(record_v1, rank, MO_INT, "fail: number of the rank that failed first", .omit = true),
	MO_D(record_v1, value, MO_INT,
	     "place: port; fail: microseconds until reported; else a time, an epoch, a "
	     "count or a word's index",
	     .omit = true),
	MO_D(record_v1, iteration, MO_INT,
	     "place, intent, incident: iteration; controller, restored, clock: a time "
	     "in microseconds",
	     .omit = true),
	MO_D_ENUM(record_v1, state, job_state_names, "job: state that it moves to", .omit = true),
	MO_D(record_v1, flag, MO_BOOL,
	     "whether what the type says began, holds or is wanted at once", .omit = true),
	MO_D(record_v1, node, MO_STR, "name of the node that it is about; unset: of none",
	     .omit = true),
	MO_D(record_v1, text, MO_STR,
	     "reason, class or signature of a failure, proof, id of a token, or boot id",
	     .omit = true),
	MO_D(record_v1, cause, MO_STR, "fail: what happened; drain: when; ack: by whom",
	     .omit = true),
	MO_D_LIST(record_v1, texts, MO_STRS,
		  "place: boot ids; fail: evidence; strange: steps; check: nodes or "
		  "findings; ack, drain: findings",
		  .omit = true, .max = UINT32_MAX),
	MO_D_VEC(record_v1, places, &place_desc,
		 "place: nodes and GPU slots, in the order of ranks", .omit = true,
		 .max = UINT32_MAX),
	MO_D_VEC(record_v1, notes, &note_desc, "notes: what became of the step, in order",
		 .omit = true, .max = UINT32_MAX),
	MO_D_SUB(record_v1, submit, MO_OPT, &submit_desc,
		 "submit: all that the job was submitted with", .omit = true),
	MO_D_SUB(record_v1, hello, MO_OPT, &agent_hello_desc, "node: what its agent said",
		 .omit = true),
	MO_D_SUB(record_v1, scan, MO_OPT, &scan_result_desc,
		 "scan: what the node found in the checkpoint directory", .omit = true),
	MO_D_SUB(record_v1, incident, MO_OPT, &incident_desc,
		 "incident: the failure as it is shown", .omit = true),
	MO_D_SUB(record_v1, checkpoint, MO_OPT, &checkpoint_desc, "checkpoint: what became of it",
		 .omit = true),
	MO_D_SUB(record_v1, token, MO_OPT, &token_desc, "token: the one that was made",
		 .omit = true),
	MO_D_SUB(record_v1, event, MO_OPT, &event_desc, "event: what people are shown",
		 .omit = true),
	MO_D_SUB(record_v1, health, MO_OPT, &node_health_desc,
		 "health: what the node's checks found", .omit = true),
	MO_D_SUB(record_v1, measured, MO_OPT, &measured_desc,
		 "measured: what the job does against its plan", .omit = true),
	MO_D_SUB(record_v1, config, MO_OPT, &config_read_desc,
		 "config: the judgement of the engine's own configuration", .omit = true),
};
const struct mo_desc record_v1_desc = MO_DESC(record_v1, record_v1_fields);

/* A number that stood for a word; -1: there is none of it. */
static int word(int64_t value, int n)
{
	return value >= 0 && value < n ? (int)value : -1;
}

static void take_texts(struct record_v1 *old, char ***ret, size_t *ret_n)
{
	*ret = old->texts;
	*ret_n = old->n_texts;
	old->texts = NULL;
	old->n_texts = 0;
}

/* Moves the content of a heap object into a struct in place. false: there was none. */
static bool take_struct(const struct mo_desc *d, void **from, void *to)
{
	if (!*from)
		return false;
	memcpy(to, *from, d->size);
	free(TAKE_PTR(*from));
	return true;
}

static void from_job(struct record_v1 *old, struct rec_job *to)
{
	to->state = old->state;
	to->reason = TAKE_PTR(old->text);
	to->attempt_over = old->flag;
	to->follows = word(old->value, _FOLLOWS_N);
}

static void from_place(struct record_v1 *old, struct rec_place *to)
{
	to->port = old->value;
	to->resume = old->iteration;
	to->is_restart = old->flag;
	to->places = TAKE_PTR(old->places);
	to->n_places = old->n_places;
	old->n_places = 0;
	take_texts(old, &to->boot_ids, &to->n_boot_ids);
}

static void from_fail(struct record_v1 *old, struct rec_fail *to)
{
	to->first_rank = old->rank;
	to->class = TAKE_PTR(old->text);
	to->cause = TAKE_PTR(old->cause);
	take_texts(old, &to->evidence, &to->n_evidence);
	to->told_after_us = old->value;
}

static void from_drain(struct record_v1 *old, struct rec_drain *to)
{
	to->step = old->value == 1 ? DRAIN_DONE : old->flag ? DRAIN_ON : DRAIN_OFF;
	to->reason = TAKE_PTR(old->text);
	to->when = TAKE_PTR(old->cause);
	to->finding = old->n_texts ? TAKE_PTR(old->texts[0]) : NULL;
	to->broken_hardware = old->n_texts > 1;
}

static void from_strange(struct record_v1 *old, struct rec_strange *to)
{
	to->holds_unknown = old->flag;
	take_texts(old, &to->living, &to->n_living);
	to->fenced = old->value == 1;
}

/* Without its content it is not whole, and refused, as it was. */
static void from_incident(struct record_v1 *old, struct record *ret)
{
	struct rec_incident *to = ret->incident;

	to->signature = TAKE_PTR(old->text);
	to->in_a_row = old->value;
	to->newest_checkpoint = old->iteration;
	if (take_struct(&incident_desc, (void **)&old->incident, &to->details))
		return;
	mo_desc_free(&rec_incident_desc, to);
	ret->incident = NULL;
}

static void from_measured(struct record_v1 *old, struct record *ret)
{
	struct rec_measured *to = ret->measured;

	to->calibrates = old->flag;
	if (take_struct(&measured_desc, (void **)&old->measured, &to->run))
		return;
	mo_desc_free(&rec_measured_desc, to);
	ret->measured = NULL;
}

static void from_check(struct record_v1 *old, struct rec_check *to)
{
	to->waits = old->flag;
	to->until = old->value;
	if (old->flag)
		take_texts(old, &to->nodes, &to->n_nodes);
	else
		take_texts(old, &to->findings, &to->n_findings);
}

static void from_clock(struct record_v1 *old, struct rec_clock *to)
{
	to->boot_id = TAKE_PTR(old->text);
	to->boottime_us = old->iteration;
	to->shift_us = old->value;
	to->synchronised = old->flag;
}

static void from_ack(struct record_v1 *old, struct rec_ack *to)
{
	take_texts(old, &to->findings, &to->n_findings);
	to->by = TAKE_PTR(old->cause);
	to->learning_over = old->flag;
}

static void from_restored(const struct record_v1 *old, struct rec_restored *to)
{
	to->epoch = old->value;
	to->backup_at = old->iteration;
	to->from_backup = old->flag;
}

static void of_job(struct record_v1 *old, struct record *ret)
{
	switch (old->type) {
	case REC_SUBMIT: ret->submit = TAKE_PTR(old->submit); break;
	case REC_JOB: from_job(old, ret->transition); break;
	case REC_INTENT:
		ret->intent->intent = word(old->value, _INTENT_N);
		ret->intent->now = old->flag;
		ret->intent->restart_from = old->iteration;
		break;
	case REC_SCAN: ret->scan = TAKE_PTR(old->scan); break;
	case REC_PLACE: from_place(old, ret->place); break;
	case REC_FAIL: from_fail(old, ret->fail); break;
	case REC_WAIT_NODE: ret->wait_node->waits = old->flag; break;
	case REC_INCIDENT: from_incident(old, ret); break;
	case REC_CHECKPOINT: ret->checkpoint = TAKE_PTR(old->checkpoint); break;
	case REC_CHECK: from_check(old, ret->check); break;
	case REC_MEASURED: from_measured(old, ret); break;
	case REC_CONFIG: ret->config = TAKE_PTR(old->config); break;
	default: break;
	}
}

static void of_step(struct record_v1 *old, struct record *ret)
{
	switch (old->type) {
	case REC_ACCEPT: ret->accept->acts = old->flag; break;
	case REC_NOTES:
		ret->notes = TAKE_PTR(old->notes);
		ret->n_notes = old->n_notes;
		old->n_notes = 0;
		break;
	case REC_GONE: ret->gone->how = TAKE_PTR(old->text); break;
	case REC_HUNG:
		ret->hung->reach = !old->flag        ? REACH_ANSWERS
				   : old->value == 1 ? REACH_MISSING
						     : REACH_HUNG;
		break;
	default: break;
	}
}

static void of_node(struct record_v1 *old, struct record *ret)
{
	switch (old->type) {
	case REC_NODE:
		take_struct(&agent_hello_desc, (void **)&old->hello, &ret->hello->said);
		ret->hello->learn_until = old->value;
		break;
	case REC_NODE_STATE:
		ret->node_state->state = word(old->value, NODE_DOWN + 1);
		ret->node_state->reason = TAKE_PTR(old->text);
		break;
	case REC_DRAIN: from_drain(old, ret->drain); break;
	case REC_STRANGE: from_strange(old, ret->strange); break;
	case REC_HEALTH: ret->health = TAKE_PTR(old->health); break;
	case REC_NODE_TOKEN: ret->node_token->expired = old->flag; break;
	case REC_ACK: from_ack(old, ret->ack); break;
	case REC_OBEYS: ret->obeys->epoch = old->value; break;
	case REC_LEAVING: ret->leaving->leaving = old->flag; break;
	default: break;
	}
}

static void of_controller(struct record_v1 *old, struct record *ret)
{
	switch (old->type) {
	case REC_CONTROLLER:
		ret->controller->epoch = old->value;
		ret->controller->restored_wait = old->iteration;
		break;
	case REC_TOKEN: ret->token = TAKE_PTR(old->token); break;
	case REC_TOKEN_REVOKED:
		ret->token_revoked->id = TAKE_PTR(old->text);
		ret->token_revoked->put_out = old->flag;
		break;
	case REC_TOKEN_USED: ret->token_used->id = TAKE_PTR(old->text); break;
	case REC_EVENT: ret->event = TAKE_PTR(old->event); break;
	case REC_CLOCK: from_clock(old, ret->clock); break;
	case REC_RESTORED: from_restored(old, ret->restored); break;
	default: break;
	}
}

void record_from_v1(struct record_v1 *old, struct record *ret)
{
	if (old->type < 0) {
		mo_desc_init(&record_desc, ret);
		ret->version = RECORD_VERSION;
		mo_desc_done(&record_v1_desc, old);
		return;
	}
	record_init(ret, old->type);
	ret->time = old->time;
	ret->job = old->job;
	ret->attempt = old->attempt;
	ret->node = TAKE_PTR(old->node);
	/* each knows its own types */
	of_job(old, ret);
	of_step(old, ret);
	of_node(old, ret);
	of_controller(old, ret);
	mo_desc_done(&record_v1_desc, old);
}
