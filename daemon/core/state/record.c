/* Description of records: how they are stored. A field that comes later is unknown in records
 * stored before; a changed meaning is a new RECORD_VERSION. */
#include "daemon/core/state/record.h"

#include "lib/base/assert.h"

const char *const record_type_names[_REC_N] = {
	"controller", "submit",    "job",           "intent",     "scan",      "place",
	"accept",     "notes",     "fail",          "gone",       "forgotten", "node",
	"node_state", "drain",     "wait_node",     "strange",    "hung",      "incident",
	"checkpoint", "token",     "token_revoked", "event",      "health",    "check",
	"measured",   "clock",     "token_used",    "node_token", "ack",       "restored",
	"obeys",      "discard",   "leaving",       "config",     "image",     "power",
	"hang",       "straggler", "history",       "spare",      "fabric",
};
static const char *const follows_names[_FOLLOWS_N] = { "nothing", "failure", "busy_ports" };
static const char *const drain_step_names[_DRAIN_STEP_N] = { "off", "on", "done", "check" };
static const char *const spare_step_names[_SPARE_STEP_N] = { "kept", "passed", "left" };
static const char *const reach_names[_REACH_N] = { "answers", "hung", "missing" };

static const struct mo_field rec_controller_fields[] = {
	MO_D(rec_controller, epoch, MO_INT, "number of this start, higher than all before"),
	MO_D(rec_controller, restored_wait, MO_TIME,
	     "until when jobs of a restored state wait for nodes; only at its first start",
	     .omit = true),
};
static const struct mo_desc rec_controller_desc = MO_DESC(rec_controller, rec_controller_fields);

static const struct mo_field rec_job_fields[] = {
	MO_D_ENUM(rec_job, state, job_state_names, "state that the job moves to"),
	MO_D(rec_job, reason, MO_STR, "why, in words; unset: nothing is to be said", .omit = true),
	MO_D(rec_job, attempt_over, MO_BOOL, "its current attempt has ended: its GPUs are free",
	     .omit = true),
	MO_D_ENUM(rec_job, follows, follows_names, "what the next attempt comes after",
		  .omit = true),
	MO_D(rec_job, pause_us, MO_INT, "microseconds until the next attempt; unset: at once",
	     .omit = true),
	MO_D(rec_job, image, MO_BOOL, "places are kept for it until they have its image",
	     .omit = true),
};
static const struct mo_desc rec_job_desc = MO_DESC(rec_job, rec_job_fields);

static const struct mo_field rec_intent_fields[] = {
	MO_D_ENUM(rec_intent, intent, intent_names, "what is wanted of the job"),
	MO_D(rec_intent, now, MO_BOOL, "without the stop signal's grace", .omit = true),
	MO_D(rec_intent, restart_from, MO_INT,
	     "iteration to go on from; 0: afresh; unset: the newest checkpoint", .omit = true),
};
static const struct mo_desc rec_intent_desc = MO_DESC(rec_intent, rec_intent_fields);

static const struct mo_field rec_place_fields[] = {
	MO_D(rec_place, port, MO_INT, "first of the attempt's TCP ports, which lie in a row"),
	MO_D(rec_place, resume, MO_INT,
	     "iteration of the checkpoint that is loaded; -1: a fresh start"),
	MO_D(rec_place, is_restart, MO_BOOL, "it counts as a restart of the job", .omit = true),
	MO_D_VEC(rec_place, places, &place_desc, "nodes and GPU slots, in the order of ranks",
		 .max = UINT32_MAX),
	MO_D_LIST(rec_place, boot_ids, MO_STRS,
		  "boot that each of these nodes was in, in the same order", .max = UINT32_MAX),
};
static const struct mo_desc rec_place_desc = MO_DESC(rec_place, rec_place_fields);

static const struct mo_field rec_accept_fields[] = {
	MO_D(rec_accept, acts, MO_BOOL, "the agent carries the launch out; false: it only has it")
};
static const struct mo_desc rec_accept_desc = MO_DESC(rec_accept, rec_accept_fields);

static const struct mo_field rec_fail_fields[] = {
	MO_D(rec_fail, first_rank, MO_INT,
	     "number of the rank that failed first; unset: no rank did", .omit = true),
	MO_D(rec_fail, class, MO_STR, "class of the failure, such as node_fault", .omit = true),
	MO_D(rec_fail, cause, MO_STR, "what happened, in words", .omit = true),
	MO_D_LIST(rec_fail, evidence, MO_STRS, "lines and readings that the verdict rests on",
		  .omit = true, .max = UINT32_MAX),
	MO_D(rec_fail, told_after_us, MO_INT,
	     "microseconds from the death until it was reported; 0: not known", .omit = true),
};
static const struct mo_desc rec_fail_desc = MO_DESC(rec_fail, rec_fail_fields);

static const struct mo_field rec_gone_fields[] = {
	MO_D(rec_gone, how, MO_STR, "what proves that every process of the step is dead")
};
static const struct mo_desc rec_gone_desc = MO_DESC(rec_gone, rec_gone_fields);

static const struct mo_field rec_hello_fields[] = {
	MO_D_SUB(rec_hello, said, MO_STRUCT, &agent_hello_desc,
		 "what the agent said of itself and its node, without its steps"),
	MO_D(rec_hello, learn_until, MO_TIME,
	     "until when unproven findings of a new node do not cordon it; unset: no "
	     "such time",
	     .omit = true),
};
static const struct mo_desc rec_hello_desc = MO_DESC(rec_hello, rec_hello_fields);

static const struct mo_field rec_node_state_fields[] = {
	MO_D_ENUM(rec_node_state, state, node_state_names, "up, suspect or down"),
	MO_D(rec_node_state, reason, MO_STR, "why, in words; unset: nothing is to be said",
	     .omit = true),
};
static const struct mo_desc rec_node_state_desc = MO_DESC(rec_node_state, rec_node_state_fields);

static const struct mo_field rec_drain_fields[] = {
	MO_D_ENUM(rec_drain, step, drain_step_names,
		  "off, on, done: no rank is left, or check: of its GPUs, before it comes back"),
	MO_D(rec_drain, reason, MO_STR, "why, in words", .omit = true),
	MO_D(rec_drain, when, MO_STR,
	     "when its ranks are to leave: idle, checkpoint or now; unset: the drain ends",
	     .omit = true),
	MO_D(rec_drain, finding, MO_STR, "finding that makes it; unset: an operator does",
	     .omit = true),
	MO_D(rec_drain, broken_hardware, MO_BOOL,
	     "the finding proves that a part of the node is broken", .omit = true),
	MO_D(rec_drain, until, MO_TIME,
	     "check: how long it is waited for; unset: it is over, and the node stays drained",
	     .omit = true),
};
static const struct mo_desc rec_drain_desc = MO_DESC(rec_drain, rec_drain_fields);

static const struct mo_field rec_wait_node_fields[] = {
	MO_D(rec_wait_node, waits, MO_BOOL,
	     "the job waits for a silent node to be heard; false: no longer")
};
static const struct mo_desc rec_wait_node_desc = MO_DESC(rec_wait_node, rec_wait_node_fields);

static const struct mo_field rec_strange_fields[] = {
	MO_D(rec_strange, holds_unknown, MO_BOOL, "the node has a step that was never stored here"),
	MO_D_LIST(rec_strange, living, MO_STRS, "names of such steps that may still run",
		  .omit = true, .max = UINT32_MAX),
	MO_D(rec_strange, fenced, MO_BOOL, "whatever was there is dead", .omit = true),
};
static const struct mo_desc rec_strange_desc = MO_DESC(rec_strange, rec_strange_fields);

static const struct mo_field rec_hung_fields[] = {
	MO_D_ENUM(rec_hung, reach, reach_names,
		  "whether the step answers its agent; missing: the agent does not know it "
		  "any more")
};
static const struct mo_desc rec_hung_desc = MO_DESC(rec_hung, rec_hung_fields);

static const struct mo_field rec_incident_fields[] = {
	MO_D_SUB(rec_incident, details, MO_STRUCT, &incident_desc, "the failure as it is shown"),
	MO_D(rec_incident, signature, MO_STR,
	     "class and cause; equal ones count as the same failure", .omit = true),
	MO_D(rec_incident, in_a_row, MO_INT,
	     "failures in a row with it and the same newest checkpoint, this one included",
	     .omit = true),
	MO_D(rec_incident, newest_checkpoint, MO_INT,
	     "iteration of the newest complete checkpoint; unset: there is none", .omit = true),
	MO_D(rec_incident, uncounted, MO_BOOL, "such failures do not stop the job", .omit = true),
	MO_D_SUB(rec_incident, skip, MO_OPT, &skip_desc, "data that the later attempts leave out",
		 .omit = true),
};
const struct mo_desc rec_incident_desc = MO_DESC(rec_incident, rec_incident_fields);

static const struct mo_field rec_token_revoked_fields[] = {
	MO_D(rec_token_revoked, id, MO_STR, "id of the token"),
	MO_D(rec_token_revoked, put_out, MO_BOOL, "a node's, by hand: the name is out with it",
	     .omit = true),
};
static const struct mo_desc rec_token_revoked_desc =
	MO_DESC(rec_token_revoked, rec_token_revoked_fields);

static const struct mo_field rec_check_fields[] = {
	MO_D(rec_check, waits, MO_BOOL,
	     "checks after a failure are being waited for; false: that is over"),
	MO_D_LIST(rec_check, nodes, MO_STRS,
		  "names of the nodes that make them, while they are waited for", .omit = true,
		  .max = UINT32_MAX),
	MO_D(rec_check, thorough, MO_BOOL, "it is asked whether their GPUs compute right",
	     .omit = true),
	MO_D(rec_check, doubted, MO_STR, "of this node only; unset: of all of them", .omit = true),
	MO_D(rec_check, until, MO_TIME, "when that wait ends at the latest", .omit = true),
	MO_D_LIST(rec_check, findings, MO_STRS, "what they found, once it is over", .omit = true,
		  .max = UINT32_MAX),
	MO_D(rec_check, later, MO_BOOL,
	     "findings are what the node told of the failure after what followed was decided",
	     .omit = true),
	MO_D(rec_check, broken, MO_BOOL, "they prove that the node is: the next attempts avoid it",
	     .omit = true),
};
static const struct mo_desc rec_check_desc = MO_DESC(rec_check, rec_check_fields);

static const struct mo_field rec_measured_fields[] = {
	MO_D_SUB(rec_measured, run, MO_STRUCT, &measured_desc,
		 "what the job does against its plan"),
	MO_D(rec_measured, calibrates, MO_BOOL, "later plans are corrected by it", .omit = true),
};
const struct mo_desc rec_measured_desc = MO_DESC(rec_measured, rec_measured_fields);

static const struct mo_field rec_clock_fields[] = {
	MO_D(rec_clock, boot_id, MO_STR, "boot of the controller's machine", .omit = true),
	MO_D(rec_clock, boottime_us, MO_INT,
	     "CLOCK_BOOTTIME of that boot at the record's time, microseconds"),
	MO_D(rec_clock, shift_us, MO_INT, "microseconds by which stored times move"),
	MO_D(rec_clock, synchronised, MO_BOOL, "a time service vouches for the wall clock"),
};
static const struct mo_desc rec_clock_desc = MO_DESC(rec_clock, rec_clock_fields);

static const struct mo_field rec_token_used_fields[] = {
	MO_D(rec_token_used, id, MO_STR, "id of the token that its node has spoken with")
};
static const struct mo_desc rec_token_used_desc = MO_DESC(rec_token_used, rec_token_used_fields);

static const struct mo_field rec_node_token_fields[] = {
	MO_D(rec_node_token, expired, MO_BOOL, "the node speaks with a token that has expired")
};
static const struct mo_desc rec_node_token_desc = MO_DESC(rec_node_token, rec_node_token_fields);

static const struct mo_field rec_ack_fields[] = {
	MO_D_LIST(rec_ack, findings, MO_STRS,
		  "findings known to an operator: they keep no job away in this boot", .omit = true,
		  .max = UINT32_MAX),
	MO_D(rec_ack, by, MO_STR, "who says so; unset: it happened by itself", .omit = true),
	MO_D(rec_ack, learning_over, MO_BOOL, "the node's time of learning is over", .omit = true),
};
static const struct mo_desc rec_ack_desc = MO_DESC(rec_ack, rec_ack_fields);

static const struct mo_field rec_restored_fields[] = {
	MO_D(rec_restored, epoch, MO_INT,
	     "highest epoch before the first start of the new incarnation"),
	MO_D(rec_restored, backup_at, MO_TIME,
	     "when the backup was made; unset: the state is that of none", .omit = true),
	MO_D(rec_restored, from_backup, MO_BOOL, "the state is that of a backup", .omit = true),
};
static const struct mo_desc rec_restored_desc = MO_DESC(rec_restored, rec_restored_fields);

static const struct mo_field rec_obeys_fields[] = {
	MO_D(rec_obeys, epoch, MO_INT,
	     "epoch that the node's agent obeyed, which is above this controller's")
};
static const struct mo_desc rec_obeys_desc = MO_DESC(rec_obeys, rec_obeys_fields);

static const struct mo_field rec_power_fields[] = {
	MO_D_ENUM(rec_power, step, power_step_names,
		  "what the site's fence_command was asked, or said, about the silent node"),
	MO_D(rec_power, text, MO_STR, "what it said; unset: it was not asked yet", .omit = true),
};
static const struct mo_desc rec_power_desc = MO_DESC(rec_power, rec_power_fields);

static const struct mo_field rec_spare_fields[] = {
	MO_D_ENUM(rec_spare, step, spare_step_names,
		  "kept for the job as a spare, passed its checks as one, or is none any more"),
	MO_D(rec_spare, reason, MO_STR, "why it is none any more", .omit = true),
};
static const struct mo_desc rec_spare_desc = MO_DESC(rec_spare, rec_spare_fields);

static const struct mo_field rec_leaving_fields[] = {
	MO_D(rec_leaving, leaving, MO_BOOL,
	     "the node's machine is going down in order; false: it does not after all")
};
static const struct mo_desc rec_leaving_desc = MO_DESC(rec_leaving, rec_leaving_fields);

static const struct mo_field rec_image_fields[] = {
	MO_D(rec_image, digest, MO_STR, "digest of the image that the job has from now on"),
};
static const struct mo_desc rec_image_desc = MO_DESC(rec_image, rec_image_fields);

static const struct mo_field rec_hang_fields[] = {
	MO_D_ENUM(rec_hang, stage, hang_stage_names,
		  "suspected or confirmed; unset: something moved", .omit = true),
	MO_D(rec_hang, since, MO_TIME, "since when nothing moves", .omit = true),
	MO_D(rec_hang, rank, MO_INT, "number of the rank that stands out; unset: none does",
	     .omit = true),
	MO_D(rec_hang, acts, MO_BOOL, "the attempt ends by it", .omit = true),
	MO_D(rec_hang, text, MO_STR, "what it is, in words", .omit = true),
	MO_D(rec_hang, recorder, MO_STR, "what flight recorders say of who waits for whom",
	     .omit = true),
	MO_D_LIST(rec_hang, evidence, MO_STRS, "what shows it, a line each", .omit = true),
};
static const struct mo_desc rec_hang_desc = MO_DESC(rec_hang, rec_hang_fields);

static const struct mo_field rec_straggler_fields[] = {
	MO_D(rec_straggler, rank, MO_INT,
	     "number of the rank that makes the attempt slow; unset: none stands out any more",
	     .omit = true),
	MO_D_ENUM(rec_straggler, sign, straggler_sign_names, "what shows it", .omit = true),
	MO_D(rec_straggler, times, MO_REAL, "what its peers have, this many times", .omit = true),
	MO_D(rec_straggler, lost_pct, MO_REAL, "percent of its time that the job loses by it",
	     .omit = true),
	MO_D(rec_straggler, text, MO_STR, "what it is, in words", .omit = true),
	MO_D_LIST(rec_straggler, evidence, MO_STRS, "what shows it, a line each", .omit = true),
	MO_D(rec_straggler, alone, MO_BOOL, "one source alone says so: nothing follows",
	     .omit = true),
	MO_D(rec_straggler, left, MO_BOOL,
	     "the job moves away from its node, and the rest is as it was said", .omit = true),
};
static const struct mo_desc rec_straggler_desc = MO_DESC(rec_straggler, rec_straggler_fields);

static const struct mo_field rec_history_fields[] = {
	MO_D_LIST(rec_history, jobs, MO_INTS, "numbers of ended jobs that are kept no longer",
		  .omit = true, .max = UINT32_MAX),
	MO_D_LIST(rec_history, events, MO_INTS, "numbers of events that are kept no longer",
		  .omit = true, .max = UINT32_MAX),
};
static const struct mo_desc rec_history_desc = MO_DESC(rec_history, rec_history_fields);

static const struct mo_field record_fields[] = {
	MO_DN(record, version, "v", MO_INT, "version of the form of records"),
	MO_D_ENUM(record, type, record_type_names,
		  "what happened: names the member that says more"),
	MO_DN(record, time, "t", MO_INT, "when, microseconds since the epoch"),
	MO_D(record, job, MO_INT, "number of the job that it is about; unset: of none",
	     .omit = true),
	MO_D(record, attempt, MO_INT, "number of the attempt that it is about; unset: of none",
	     .omit = true),
	MO_D(record, node, MO_STR, "name of the node that it is about; unset: of none",
	     .omit = true),
	MO_D_SUB(record, controller, MO_OPT, &rec_controller_desc, "a controller started",
		 .omit = true),
	MO_D_SUB(record, submit, MO_OPT, &submit_desc,
		 "a job was accepted, with all that it was submitted with", .omit = true),
	MO_D_SUB(record, transition, MO_OPT, &rec_job_desc,
		 "a job changed its state, or the reason for it", .omit = true),
	MO_D_SUB(record, intent, MO_OPT, &rec_intent_desc,
		 "what somebody, or a limit, wants of the job", .omit = true),
	MO_D_SUB(record, scan, MO_OPT, &scan_result_desc,
		 "what a node found in the attempt's checkpoint directory", .omit = true),
	MO_D_SUB(record, place, MO_OPT, &rec_place_desc, "an attempt got its nodes", .omit = true),
	MO_D_SUB(record, accept, MO_OPT, &rec_accept_desc,
		 "a node's agent has its part of the launch", .omit = true),
	MO_D_VEC(record, notes, &note_desc,
		 "what became of the attempt's step on the node, in order", .omit = true,
		 .max = UINT32_MAX),
	MO_D_SUB(record, fail, MO_OPT, &rec_fail_desc, "the attempt failed, decided once",
		 .omit = true),
	MO_D_SUB(record, gone, MO_OPT, &rec_gone_desc,
		 "the attempt's step on the node is proved dead without a note of it",
		 .omit = true),
	MO_D_SUB(record, hello, MO_OPT, &rec_hello_desc, "the node registered, or came back",
		 .omit = true),
	MO_D_SUB(record, node_state, MO_OPT, &rec_node_state_desc, "the node was heard, or was not",
		 .omit = true),
	MO_D_SUB(record, drain, MO_OPT, &rec_drain_desc, "the node is drained, or is no longer",
		 .omit = true),
	MO_D_SUB(record, wait_node, MO_OPT, &rec_wait_node_desc,
		 "the job waits for a node, or no longer", .omit = true),
	MO_D_SUB(record, strange, MO_OPT, &rec_strange_desc,
		 "whether the node holds steps that were never stored", .omit = true),
	MO_D_SUB(record, hung, MO_OPT, &rec_hung_desc,
		 "whether the attempt's step on the node answers", .omit = true),
	MO_D_SUB(record, incident, MO_OPT, &rec_incident_desc,
		 "what the failure was, and what was done about it", .omit = true),
	MO_D_SUB(record, checkpoint, MO_OPT, &checkpoint_desc,
		 "what became of a checkpoint of the job", .omit = true),
	MO_D_SUB(record, token, MO_OPT, &token_desc, "a token was made", .omit = true),
	MO_D_SUB(record, token_revoked, MO_OPT, &rec_token_revoked_desc,
		 "a token is valid no longer", .omit = true),
	MO_D_SUB(record, event, MO_OPT, &event_desc, "what people are shown of it", .omit = true),
	MO_D_SUB(record, health, MO_OPT, &node_health_desc,
		 "what the node's checks found: replaces what was reported before", .omit = true),
	MO_D_SUB(record, check, MO_OPT, &rec_check_desc,
		 "whether checks after the attempt's failure are waited for", .omit = true),
	MO_D_SUB(record, measured, MO_OPT, &rec_measured_desc, "what the job does against its plan",
		 .omit = true),
	MO_D_SUB(record, clock, MO_OPT, &rec_clock_desc, "the controller's clock at that time",
		 .omit = true),
	MO_D_SUB(record, token_used, MO_OPT, &rec_token_used_desc,
		 "the node of a token has spoken with it", .omit = true),
	MO_D_SUB(record, node_token, MO_OPT, &rec_node_token_desc,
		 "whether the node speaks with an expired token", .omit = true),
	MO_D_SUB(record, ack, MO_OPT, &rec_ack_desc,
		 "findings of the node that an operator knows of", .omit = true),
	MO_D_SUB(record, restored, MO_OPT, &rec_restored_desc,
		 "a new incarnation of the state begins", .omit = true),
	MO_D_SUB(record, obeys, MO_OPT, &rec_obeys_desc,
		 "the node's agent obeyed a later epoch than this state knows", .omit = true),
	MO_D_SUB(record, leaving, MO_OPT, &rec_leaving_desc,
		 "whether the node's machine is going down", .omit = true),
	MO_D_SUB(record, config, MO_OPT, &config_read_desc,
		 "the judgement of the engine's own configuration, as the node read it",
		 .omit = true),
	MO_D_SUB(record, image, MO_OPT, &rec_image_desc, "image: which one a recipe names",
		 .omit = true),
	MO_D_SUB(record, power, MO_OPT, &rec_power_desc,
		 "whether a silent node was powered off by the site's command", .omit = true),
	MO_D_SUB(record, hang, MO_OPT, &rec_hang_desc, "whether the attempt hangs", .omit = true),
	MO_D_SUB(record, straggler, MO_OPT, &rec_straggler_desc,
		 "which rank makes the attempt slow", .omit = true),
	MO_D_SUB(record, history, MO_OPT, &rec_history_desc,
		 "what is kept no longer because of its age", .omit = true),
	MO_D_SUB(record, spare, MO_OPT, &rec_spare_desc,
		 "whether the node is kept for the job beside its ranks", .omit = true),
	MO_D_SUB(record, fabric, MO_OPT, &fabric_check_desc,
		 "what a check of the fabric over the job's nodes found", .omit = true),
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
	MEMBER(REC_IMAGE, image, &rec_image_desc),
	MEMBER(REC_POWER, power, &rec_power_desc),
	MEMBER(REC_HANG, hang, &rec_hang_desc),
	MEMBER(REC_STRAGGLER, straggler, &rec_straggler_desc),
	MEMBER(REC_HISTORY, history, &rec_history_desc),
	MEMBER(REC_SPARE, spare, &rec_spare_desc),
	MEMBER(REC_FABRIC, fabric, &fabric_check_desc),
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
