/* Description of records: how they are stored. A new field is added at the end of a type's use;
 * a changed meaning is a new RECORD_VERSION. */
#include "daemon/core/state/record.h"

const char *const record_type_names[_REC_N] = {
	"controller", "submit",   "job",   "intent",    "scan",       "place",      "accept",
	"notes",      "fail",     "gone",  "forgotten", "node",       "node_state", "drain",
	"wait_node",  "strange",  "hung",  "incident",  "checkpoint", "token",      "token_revoked",
	"event",      "health",   "check", "measured",  "clock",      "token_used", "node_token",
	"ack",        "restored", "obeys", "discard",   "leaving",    "config",
};

static const struct mo_field record_fields[] = {
	MO_FN(record, version, "v", MO_INT),
	MO_F_ENUM(record, type, record_type_names),
	MO_FN(record, time, "t", MO_INT),
	MO_F(record, job, MO_INT, .omit = true),
	MO_F(record, attempt, MO_INT, .omit = true),
	MO_F(record, rank, MO_INT, .omit = true),
	MO_F(record, value, MO_INT, .omit = true),
	MO_F(record, iteration, MO_INT, .omit = true),
	MO_F_ENUM(record, state, job_state_names, .omit = true),
	MO_F(record, flag, MO_BOOL, .omit = true),
	MO_F(record, node, MO_STR, .omit = true),
	MO_F(record, text, MO_STR, .omit = true),
	MO_F(record, cause, MO_STR, .omit = true),
	MO_F_LIST(record, texts, MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_F_VEC(record, places, &place_desc, .omit = true, .max = UINT32_MAX),
	MO_F_VEC(record, notes, &note_desc, .omit = true, .max = UINT32_MAX),
	MO_F_SUB(record, submit, MO_OPT, &submit_desc, .omit = true),
	MO_F_SUB(record, hello, MO_OPT, &agent_hello_desc, .omit = true),
	MO_F_SUB(record, scan, MO_OPT, &scan_result_desc, .omit = true),
	MO_F_SUB(record, incident, MO_OPT, &incident_desc, .omit = true),
	MO_F_SUB(record, checkpoint, MO_OPT, &checkpoint_desc, .omit = true),
	MO_F_SUB(record, token, MO_OPT, &token_desc, .omit = true),
	MO_F_SUB(record, event, MO_OPT, &event_desc, .omit = true),
	MO_F_SUB(record, health, MO_OPT, &node_health_desc, .omit = true),
	MO_F_SUB(record, measured, MO_OPT, &measured_desc, .omit = true),
	MO_F_SUB(record, config, MO_OPT, &config_read_desc, .omit = true),
};
const struct mo_desc record_desc = MO_DESC(record, record_fields);
