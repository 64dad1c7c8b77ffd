/* Descriptions of the agent protocol's messages: the exact keys on the wire. */
#include "lib/model/message.h"

#include "lib/model/limits.h"

const char *const step_state_names[_STEP_STATE_N] = { "spooled",  "starting", "running",
						      "stopping", "gone",     "hung" };
const char *const command_kind_names[_COMMAND_KIND_N] = { "launch", "stop",  "kill", "forget",
							  "scan",   "query", "check" };

const char *const scan_order_names[_ORDER_N] = { "scan", "verify", "prune", "last_scan" };

static const struct mo_field rank_progress_fields[] = {
	MO_F(rank_progress, rank, MO_INT, .most = MO_RANKS_MAX),
	MO_F(rank_progress, iteration, MO_INT, .most = MO_FIT_ITERATION),
	MO_F(rank_progress, step_ms, MO_REAL, .most = 1000000000000),
	MO_F_ENUM(rank_progress, phase, phase_names),
};
const struct mo_desc rank_progress_desc = MO_DESC(rank_progress, rank_progress_fields);

static const struct mo_field step_report_fields[] = {
	MO_F(step_report, job, MO_INT),
	MO_F(step_report, attempt, MO_INT),
	MO_F_ENUM(step_report, state, step_state_names),
	MO_F(step_report, written, MO_INT),
	MO_F_VEC(step_report, notes, &note_desc, .omit = true, .max = MO_NOTES_PER_SYNC),
	MO_F_VEC(step_report, progress, &rank_progress_desc, .omit = true,
		 .max = MO_GPUS_PER_NODE_MAX),
};
const struct mo_desc step_report_desc = MO_DESC(step_report, step_report_fields);

static const struct mo_field agent_hello_fields[] = {
	MO_F(agent_hello, node, MO_STR, .max = MO_LONGEST_NAME),
	MO_F(agent_hello, boot_id, MO_STR, .max = 128),
	MO_F(agent_hello, instance, MO_STR, .max = 128),
	MO_F(agent_hello, protocol, MO_INT),
	MO_F(agent_hello, version, MO_STR, .max = 128),
	MO_F(agent_hello, address, MO_STR, .max = 256),
	MO_F_SUB(agent_hello, info, MO_STRUCT, &nodeinfo_desc),
	MO_F(agent_hello, health, MO_BOOL, .omit = true),
	MO_F(agent_hello, min_uid, MO_INT, .omit = true),
	MO_F_VEC(agent_hello, steps, &step_report_desc, .max = MO_STEPS_PER_NODE_MAX),
};
const struct mo_desc agent_hello_desc = MO_DESC(agent_hello, agent_hello_fields);

static const struct mo_field step_ack_fields[] = {
	MO_F(step_ack, job, MO_INT),
	MO_F(step_ack, attempt, MO_INT),
	MO_F(step_ack, through, MO_INT),
	MO_F(step_ack, known, MO_BOOL),
};
const struct mo_desc step_ack_desc = MO_DESC(step_ack, step_ack_fields);

static const struct mo_field agent_welcome_fields[] = {
	MO_F(agent_welcome, epoch, MO_INT),
	MO_F(agent_welcome, beat_ms, MO_INT),
	MO_F_VEC(agent_welcome, steps, &step_ack_desc, .max = MO_STEPS_PER_NODE_MAX),
	MO_F_SUB(agent_welcome, info, MO_OPT, &nodeinfo_desc, .omit = true),
	MO_F(agent_welcome, token, MO_STR, .omit = true, .max = 32),
	MO_F(agent_welcome, orders, MO_BOOL, .omit = true),
};
const struct mo_desc agent_welcome_desc = MO_DESC(agent_welcome, agent_welcome_fields);

static const struct mo_field found_checkpoint_fields[] = {
	MO_F(found_checkpoint, iteration, MO_INT, .most = MO_FIT_ITERATION),
	MO_F(found_checkpoint, path, MO_STR, .most = MO_TEXT_MAX),
	MO_F(found_checkpoint, bytes, MO_INT, .most = MO_FIT_INT),
	MO_F(found_checkpoint, complete, MO_BOOL),
	MO_F(found_checkpoint, reason, MO_STR, .most = MO_TEXT_MAX),
	MO_F(found_checkpoint, saved_at, MO_TIME),
	MO_F(found_checkpoint, level, MO_STR, .omit = true, .max = 16),
	MO_F(found_checkpoint, manifest, MO_STR, .omit = true, .max = 64),
	MO_F(found_checkpoint, fixed, MO_STR, .omit = true, .max = 128),
	MO_F(found_checkpoint, held, MO_STR, .omit = true, .most = MO_TEXT_MAX),
};
const struct mo_desc found_checkpoint_desc = MO_DESC(found_checkpoint, found_checkpoint_fields);

static const struct mo_field unread_state_fields[] = {
	MO_F(unread_state, name, MO_STR, .most = MO_TEXT_MAX),
	MO_F(unread_state, bytes, MO_INT, .most = MO_FIT_INT),
	MO_F(unread_state, saved_at, MO_TIME),
	MO_F(unread_state, iteration, MO_INT, .omit = true, .most = MO_FIT_ITERATION),
	MO_F(unread_state, where, MO_STR, .omit = true, .most = MO_TEXT_MAX),
};
const struct mo_desc unread_state_desc = MO_DESC(unread_state, unread_state_fields);

static const struct mo_field scan_result_fields[] = {
	MO_F(scan_result, job, MO_INT),
	MO_F(scan_result, attempt, MO_INT),
	MO_F_ENUM(scan_result, order, scan_order_names, .omit = true),
	MO_F(scan_result, id, MO_INT, .omit = true),
	MO_F(scan_result, error, MO_STR, .most = MO_TEXT_MAX),
	MO_F(scan_result, writable, MO_BOOL),
	MO_F(scan_result, real, MO_STR, .omit = true, .most = MO_TEXT_MAX),
	MO_F(scan_result, place, MO_STR, .omit = true, .max = 16),
	MO_F(scan_result, alias, MO_STR, .omit = true, .most = MO_TEXT_MAX),
	MO_F_VEC(scan_result, items, &found_checkpoint_desc, .max = MO_CHECKPOINTS_MAX),
	MO_F_VEC(scan_result, unread, &unread_state_desc, .omit = true, .max = MO_UNREAD_MAX),
	MO_F(scan_result, unread_more, MO_INT, .omit = true, .most = MO_FIT_INT),
};
const struct mo_desc scan_result_desc = MO_DESC(scan_result, scan_result_fields);

void scan_result_fit(struct scan_result *s)
{
	if (mo_desc_text_bytes(&scan_result_desc, s) <= MO_PORTION_BYTES)
		return;
	mo_vec_clear(&found_checkpoint_desc, (void **)&s->items, &s->n_items);
	mo_str_set(&s->error, "the names of its checkpoints are longer than 1.5 MiB: keep fewer "
			      "there, or in a directory of a shorter name");
}

static const struct mo_field agent_sync_fields[] = {
	MO_F(agent_sync, node, MO_STR, .max = MO_LONGEST_NAME),
	MO_F(agent_sync, boot_id, MO_STR, .max = 128),
	MO_F(agent_sync, instance, MO_STR, .max = 128),
	MO_F(agent_sync, epoch, MO_INT),
	MO_F(agent_sync, beat, MO_INT),
	MO_F(agent_sync, mono_ns, MO_INT),
	MO_F_VEC(agent_sync, steps, &step_report_desc, .max = MO_STEPS_PER_NODE_MAX),
	MO_F_VEC(agent_sync, scans, &scan_result_desc, .omit = true, .max = MO_STEPS_PER_NODE_MAX),
	MO_F_SUB(agent_sync, health, MO_OPT, &node_health_desc, .omit = true),
	MO_F_VEC(agent_sync, sensors, &gpu_sensors_desc, .omit = true, .max = MO_GPUS_PER_NODE_MAX),
	MO_F_VEC(agent_sync, nics, &nic_sensors_desc, .omit = true, .max = MO_GPUS_PER_NODE_MAX),
	MO_F(agent_sync, leaving, MO_BOOL, .omit = true),
};
const struct mo_desc agent_sync_desc = MO_DESC(agent_sync, agent_sync_fields);

static const struct mo_field command_fields[] = {
	MO_F(command, epoch, MO_INT),
	MO_F_ENUM(command, kind, command_kind_names),
	MO_F(command, job, MO_INT, .omit = true),
	MO_F(command, attempt, MO_INT, .omit = true),
	MO_F_ENUM(command, order, scan_order_names, .omit = true),
	MO_F(command, id, MO_INT, .omit = true),
	MO_F(command, node, MO_STR),
	MO_F(command, boot_id, MO_STR, .omit = true),
	MO_F_SUB(command, launch, MO_OPT, &launch_desc, .omit = true),
	MO_F(command, signal, MO_INT, .omit = true),
	MO_F(command, grace_us, MO_INT, .omit = true),
	MO_F(command, dir, MO_STR, .omit = true),
	MO_F_SUB(command, layout, MO_OPT, &ckpt_layout_desc, .omit = true),
	MO_F(command, user, MO_STR, .omit = true),
	MO_F(command, level, MO_STR, .omit = true),
	MO_F(command, allow_root, MO_BOOL, .omit = true),
	MO_F(command, world, MO_INT, .omit = true),
	MO_F_VEC(command, prune, &found_checkpoint_desc, .omit = true, .max = MO_CHECKPOINTS_MAX),
	MO_F_VEC(command, known, &found_checkpoint_desc, .omit = true, .max = MO_CHECKPOINTS_MAX),
	MO_F(command, only, MO_INT, .omit = true),
	MO_F(command, path, MO_STR, .omit = true),
	MO_F(command, named, MO_STR, .omit = true),
	MO_F(command, doubt, MO_STR, .omit = true),
	MO_F(command, announced, MO_BOOL, .omit = true),
	MO_F(command, restore, MO_BOOL, .omit = true),
	MO_F(command, part, MO_INT, .omit = true),
	MO_F(command, parts, MO_INT, .omit = true),
	MO_F(command, query, MO_INT, .omit = true),
	MO_F(command, what, MO_STR, .omit = true, .max = 32),
	MO_F(command, rank, MO_INT, .omit = true),
	MO_F(command, offset, MO_INT, .omit = true),
	MO_F(command, lines, MO_INT, .omit = true),
	MO_F(command, wait_ms, MO_INT, .omit = true),
};
const struct mo_desc command_desc = MO_DESC(command, command_fields);

static const struct mo_field sync_reply_fields[] = {
	MO_F(sync_reply, epoch, MO_INT),
	MO_F(sync_reply, health, MO_INT, .omit = true),
	MO_F_VEC(sync_reply, acks, &step_ack_desc, .max = MO_STEPS_PER_NODE_MAX),
	MO_F_VEC(sync_reply, commands, &command_desc, .max = MO_STEPS_PER_NODE_MAX),
	MO_F(sync_reply, token, MO_STR, .omit = true, .max = 32),
};
const struct mo_desc sync_reply_desc = MO_DESC(sync_reply, sync_reply_fields);

static const struct mo_field query_answer_fields[] = {
	MO_F(query_answer, node, MO_STR, .max = MO_LONGEST_NAME),
	/* a number of ours: all of it counts */
	MO_F(query_answer, query, MO_INT, .most = INT64_MAX),
	MO_F(query_answer, error, MO_STR, .most = MO_TEXT_MAX),
	MO_F(query_answer, text, MO_STR, .max = MO_AGENT_BODY_BYTES_MAX,
	     .most = MO_AGENT_BODY_BYTES_MAX),
	MO_F(query_answer, offset, MO_INT, .most = MO_FIT_INT),
	MO_F(query_answer, more, MO_BOOL),
	MO_F(query_answer, end, MO_BOOL),
};
const struct mo_desc query_answer_desc = MO_DESC(query_answer, query_answer_fields);

static const struct mo_field token_trade_fields[] = { MO_F(token_trade, node, MO_STR,
							   .max = MO_LONGEST_NAME) };
static const struct mo_field token_traded_fields[] = {
	MO_F(token_traded, id, MO_STR, .max = 64),
	MO_F(token_traded, token, MO_STR, .max = 256),
	MO_F(token_traded, expires_at, MO_TIME),
};
const struct mo_desc token_trade_desc = MO_DESC(token_trade, token_trade_fields);
const struct mo_desc token_traded_desc = MO_DESC(token_traded, token_traded_fields);
