/* Description of records: how they are stored. A field that comes later is unknown in records
 * stored before; a changed meaning is a new RECORD_VERSION. */
#include "daemon/core/state/record.h"

#include "lib/base/assert.h"

const char *const record_type_names[_REC_N] = {
	"controller", "submit",   "job",   "intent",    "scan",       "place",      "accept",
	"notes",      "fail",     "gone",  "forgotten", "node",       "node_state", "drain",
	"wait_node",  "strange",  "hung",  "incident",  "checkpoint", "token",      "token_revoked",
	"event",      "health",   "check", "measured",  "clock",      "token_used", "node_token",
	"ack",        "restored", "obeys", "discard",   "leaving",    "config",
};
static const char *const follows_names[_FOLLOWS_N] = { "nothing", "failure", "busy_ports" };
static const char *const drain_step_names[_DRAIN_STEP_N] = { "off", "on", "done" };
static const char *const reach_names[_REACH_N] = { "answers", "hung", "missing" };

static const struct mo_field rec_controller_fields[] = {
	MO_F(rec_controller, epoch, MO_INT),
	MO_F(rec_controller, restored_wait, MO_TIME, .omit = true),
};
static const struct mo_desc rec_controller_desc = MO_DESC(rec_controller, rec_controller_fields);

static const struct mo_field rec_job_fields[] = {
	MO_F_ENUM(rec_job, state, job_state_names),
	MO_F(rec_job, reason, MO_STR, .omit = true),
	MO_F(rec_job, attempt_over, MO_BOOL, .omit = true),
	MO_F_ENUM(rec_job, follows, follows_names, .omit = true),
};
static const struct mo_desc rec_job_desc = MO_DESC(rec_job, rec_job_fields);

static const struct mo_field rec_intent_fields[] = {
	MO_F_ENUM(rec_intent, intent, intent_names),
	MO_F(rec_intent, now, MO_BOOL, .omit = true),
	MO_F(rec_intent, restart_from, MO_INT, .omit = true),
};
static const struct mo_desc rec_intent_desc = MO_DESC(rec_intent, rec_intent_fields);

static const struct mo_field rec_place_fields[] = {
	MO_F(rec_place, port, MO_INT),
	MO_F(rec_place, resume, MO_INT),
	MO_F(rec_place, is_restart, MO_BOOL, .omit = true),
	MO_F_VEC(rec_place, places, &place_desc, .max = UINT32_MAX),
	MO_F_LIST(rec_place, boot_ids, MO_STRS, .max = UINT32_MAX),
};
static const struct mo_desc rec_place_desc = MO_DESC(rec_place, rec_place_fields);

static const struct mo_field rec_accept_fields[] = { MO_F(rec_accept, acts, MO_BOOL) };
static const struct mo_desc rec_accept_desc = MO_DESC(rec_accept, rec_accept_fields);

static const struct mo_field rec_fail_fields[] = {
	MO_F(rec_fail, first_rank, MO_INT, .omit = true),
	MO_F(rec_fail, class, MO_STR, .omit = true),
	MO_F(rec_fail, cause, MO_STR, .omit = true),
	MO_F_LIST(rec_fail, evidence, MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_F(rec_fail, told_after_us, MO_INT, .omit = true),
};
static const struct mo_desc rec_fail_desc = MO_DESC(rec_fail, rec_fail_fields);

static const struct mo_field rec_gone_fields[] = { MO_F(rec_gone, how, MO_STR) };
static const struct mo_desc rec_gone_desc = MO_DESC(rec_gone, rec_gone_fields);

static const struct mo_field rec_hello_fields[] = {
	MO_F_SUB(rec_hello, said, MO_STRUCT, &agent_hello_desc),
	MO_F(rec_hello, learn_until, MO_TIME, .omit = true),
};
static const struct mo_desc rec_hello_desc = MO_DESC(rec_hello, rec_hello_fields);

static const struct mo_field rec_node_state_fields[] = {
	MO_F_ENUM(rec_node_state, state, node_state_names),
	MO_F(rec_node_state, reason, MO_STR, .omit = true),
};
static const struct mo_desc rec_node_state_desc = MO_DESC(rec_node_state, rec_node_state_fields);

static const struct mo_field rec_drain_fields[] = {
	MO_F_ENUM(rec_drain, step, drain_step_names),
	MO_F(rec_drain, reason, MO_STR, .omit = true),
	MO_F(rec_drain, when, MO_STR, .omit = true),
	MO_F(rec_drain, finding, MO_STR, .omit = true),
	MO_F(rec_drain, broken_hardware, MO_BOOL, .omit = true),
};
static const struct mo_desc rec_drain_desc = MO_DESC(rec_drain, rec_drain_fields);

static const struct mo_field rec_wait_node_fields[] = { MO_F(rec_wait_node, waits, MO_BOOL) };
static const struct mo_desc rec_wait_node_desc = MO_DESC(rec_wait_node, rec_wait_node_fields);

static const struct mo_field rec_strange_fields[] = {
	MO_F(rec_strange, holds_unknown, MO_BOOL),
	MO_F_LIST(rec_strange, living, MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_F(rec_strange, fenced, MO_BOOL, .omit = true),
};
static const struct mo_desc rec_strange_desc = MO_DESC(rec_strange, rec_strange_fields);

static const struct mo_field rec_hung_fields[] = { MO_F_ENUM(rec_hung, reach, reach_names) };
static const struct mo_desc rec_hung_desc = MO_DESC(rec_hung, rec_hung_fields);

static const struct mo_field rec_incident_fields[] = {
	MO_F_SUB(rec_incident, details, MO_STRUCT, &incident_desc),
	MO_F(rec_incident, signature, MO_STR, .omit = true),
	MO_F(rec_incident, in_a_row, MO_INT, .omit = true),
	MO_F(rec_incident, newest_checkpoint, MO_INT, .omit = true),
};
const struct mo_desc rec_incident_desc = MO_DESC(rec_incident, rec_incident_fields);

static const struct mo_field rec_token_revoked_fields[] = {
	MO_F(rec_token_revoked, id, MO_STR),
	MO_F(rec_token_revoked, put_out, MO_BOOL, .omit = true),
};
static const struct mo_desc rec_token_revoked_desc =
	MO_DESC(rec_token_revoked, rec_token_revoked_fields);

static const struct mo_field rec_check_fields[] = {
	MO_F(rec_check, waits, MO_BOOL),
	MO_F_LIST(rec_check, nodes, MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_F(rec_check, until, MO_TIME, .omit = true),
	MO_F_LIST(rec_check, findings, MO_STRS, .omit = true, .max = UINT32_MAX),
};
static const struct mo_desc rec_check_desc = MO_DESC(rec_check, rec_check_fields);

static const struct mo_field rec_measured_fields[] = {
	MO_F_SUB(rec_measured, run, MO_STRUCT, &measured_desc),
	MO_F(rec_measured, calibrates, MO_BOOL, .omit = true),
};
const struct mo_desc rec_measured_desc = MO_DESC(rec_measured, rec_measured_fields);

static const struct mo_field rec_clock_fields[] = {
	MO_F(rec_clock, boot_id, MO_STR, .omit = true),
	MO_F(rec_clock, boottime_us, MO_INT),
	MO_F(rec_clock, shift_us, MO_INT),
	MO_F(rec_clock, synchronised, MO_BOOL),
};
static const struct mo_desc rec_clock_desc = MO_DESC(rec_clock, rec_clock_fields);

static const struct mo_field rec_token_used_fields[] = { MO_F(rec_token_used, id, MO_STR) };
static const struct mo_desc rec_token_used_desc = MO_DESC(rec_token_used, rec_token_used_fields);

static const struct mo_field rec_node_token_fields[] = { MO_F(rec_node_token, expired, MO_BOOL) };
static const struct mo_desc rec_node_token_desc = MO_DESC(rec_node_token, rec_node_token_fields);

static const struct mo_field rec_ack_fields[] = {
	MO_F_LIST(rec_ack, findings, MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_F(rec_ack, by, MO_STR, .omit = true),
	MO_F(rec_ack, learning_over, MO_BOOL, .omit = true),
};
static const struct mo_desc rec_ack_desc = MO_DESC(rec_ack, rec_ack_fields);

static const struct mo_field rec_restored_fields[] = {
	MO_F(rec_restored, epoch, MO_INT),
	MO_F(rec_restored, backup_at, MO_TIME, .omit = true),
	MO_F(rec_restored, from_backup, MO_BOOL, .omit = true),
};
static const struct mo_desc rec_restored_desc = MO_DESC(rec_restored, rec_restored_fields);

static const struct mo_field rec_obeys_fields[] = { MO_F(rec_obeys, epoch, MO_INT) };
static const struct mo_desc rec_obeys_desc = MO_DESC(rec_obeys, rec_obeys_fields);

static const struct mo_field rec_leaving_fields[] = { MO_F(rec_leaving, leaving, MO_BOOL) };
static const struct mo_desc rec_leaving_desc = MO_DESC(rec_leaving, rec_leaving_fields);

static const struct mo_field record_fields[] = {
	MO_FN(record, version, "v", MO_INT),
	MO_F_ENUM(record, type, record_type_names),
	MO_FN(record, time, "t", MO_INT),
	MO_F(record, job, MO_INT, .omit = true),
	MO_F(record, attempt, MO_INT, .omit = true),
	MO_F(record, node, MO_STR, .omit = true),
	MO_F_SUB(record, controller, MO_OPT, &rec_controller_desc, .omit = true),
	MO_F_SUB(record, submit, MO_OPT, &submit_desc, .omit = true),
	MO_F_SUB(record, transition, MO_OPT, &rec_job_desc, .omit = true),
	MO_F_SUB(record, intent, MO_OPT, &rec_intent_desc, .omit = true),
	MO_F_SUB(record, scan, MO_OPT, &scan_result_desc, .omit = true),
	MO_F_SUB(record, place, MO_OPT, &rec_place_desc, .omit = true),
	MO_F_SUB(record, accept, MO_OPT, &rec_accept_desc, .omit = true),
	MO_F_VEC(record, notes, &note_desc, .omit = true, .max = UINT32_MAX),
	MO_F_SUB(record, fail, MO_OPT, &rec_fail_desc, .omit = true),
	MO_F_SUB(record, gone, MO_OPT, &rec_gone_desc, .omit = true),
	MO_F_SUB(record, hello, MO_OPT, &rec_hello_desc, .omit = true),
	MO_F_SUB(record, node_state, MO_OPT, &rec_node_state_desc, .omit = true),
	MO_F_SUB(record, drain, MO_OPT, &rec_drain_desc, .omit = true),
	MO_F_SUB(record, wait_node, MO_OPT, &rec_wait_node_desc, .omit = true),
	MO_F_SUB(record, strange, MO_OPT, &rec_strange_desc, .omit = true),
	MO_F_SUB(record, hung, MO_OPT, &rec_hung_desc, .omit = true),
	MO_F_SUB(record, incident, MO_OPT, &rec_incident_desc, .omit = true),
	MO_F_SUB(record, checkpoint, MO_OPT, &checkpoint_desc, .omit = true),
	MO_F_SUB(record, token, MO_OPT, &token_desc, .omit = true),
	MO_F_SUB(record, token_revoked, MO_OPT, &rec_token_revoked_desc, .omit = true),
	MO_F_SUB(record, event, MO_OPT, &event_desc, .omit = true),
	MO_F_SUB(record, health, MO_OPT, &node_health_desc, .omit = true),
	MO_F_SUB(record, check, MO_OPT, &rec_check_desc, .omit = true),
	MO_F_SUB(record, measured, MO_OPT, &rec_measured_desc, .omit = true),
	MO_F_SUB(record, clock, MO_OPT, &rec_clock_desc, .omit = true),
	MO_F_SUB(record, token_used, MO_OPT, &rec_token_used_desc, .omit = true),
	MO_F_SUB(record, node_token, MO_OPT, &rec_node_token_desc, .omit = true),
	MO_F_SUB(record, ack, MO_OPT, &rec_ack_desc, .omit = true),
	MO_F_SUB(record, restored, MO_OPT, &rec_restored_desc, .omit = true),
	MO_F_SUB(record, obeys, MO_OPT, &rec_obeys_desc, .omit = true),
	MO_F_SUB(record, leaving, MO_OPT, &rec_leaving_desc, .omit = true),
	MO_F_SUB(record, config, MO_OPT, &config_read_desc, .omit = true),
};
const struct mo_desc record_desc = MO_DESC(record, record_fields);

/* The member of each type. desc: made by record_init(); offset 0: it has none, or one that may
 * be empty. */
static const struct member {
	size_t offset;
	const struct mo_desc *desc;
} members[_REC_N] = {
#define MEMBER(type, m, d) [type] = { offsetof(struct record, m), d }
	MEMBER(REC_CONTROLLER, controller, &rec_controller_desc),
	MEMBER(REC_SUBMIT, submit, NULL),
	MEMBER(REC_JOB, transition, &rec_job_desc),
	MEMBER(REC_INTENT, intent, &rec_intent_desc),
	MEMBER(REC_SCAN, scan, NULL),
	MEMBER(REC_PLACE, place, &rec_place_desc),
	MEMBER(REC_ACCEPT, accept, &rec_accept_desc),
	MEMBER(REC_FAIL, fail, &rec_fail_desc),
	MEMBER(REC_GONE, gone, &rec_gone_desc),
	MEMBER(REC_NODE, hello, &rec_hello_desc),
	MEMBER(REC_NODE_STATE, node_state, &rec_node_state_desc),
	MEMBER(REC_DRAIN, drain, &rec_drain_desc),
	MEMBER(REC_WAIT_NODE, wait_node, &rec_wait_node_desc),
	MEMBER(REC_STRANGE, strange, &rec_strange_desc),
	MEMBER(REC_HUNG, hung, &rec_hung_desc),
	MEMBER(REC_INCIDENT, incident, &rec_incident_desc),
	MEMBER(REC_CHECKPOINT, checkpoint, NULL),
	MEMBER(REC_TOKEN, token, NULL),
	MEMBER(REC_TOKEN_REVOKED, token_revoked, &rec_token_revoked_desc),
	MEMBER(REC_EVENT, event, NULL),
	MEMBER(REC_HEALTH, health, NULL),
	MEMBER(REC_CHECK, check, &rec_check_desc),
	MEMBER(REC_MEASURED, measured, &rec_measured_desc),
	MEMBER(REC_CLOCK, clock, &rec_clock_desc),
	MEMBER(REC_TOKEN_USED, token_used, &rec_token_used_desc),
	MEMBER(REC_NODE_TOKEN, node_token, &rec_node_token_desc),
	MEMBER(REC_ACK, ack, &rec_ack_desc),
	MEMBER(REC_RESTORED, restored, &rec_restored_desc),
	MEMBER(REC_OBEYS, obeys, &rec_obeys_desc),
	MEMBER(REC_LEAVING, leaving, &rec_leaving_desc),
	MEMBER(REC_CONFIG, config, NULL),
#undef MEMBER
};

void record_init(struct record *r, int type)
{
	mo_assert(type >= 0 && type < _REC_N);
	mo_desc_init(&record_desc, r);
	r->version = RECORD_VERSION;
	r->type = type;
	if (members[type].desc)
		*(void **)((char *)r + members[type].offset) = mo_desc_new(members[type].desc);
}

bool record_whole(const struct record *r)
{
	size_t at = members[r->type].offset;

	return at == 0 || *(void *const *)((const char *)r + at);
}
