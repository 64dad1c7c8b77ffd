/* Descriptions of the agent protocol's messages: the exact keys on the wire. */
#include "lib/model/message.h"

#include "lib/base/desc_fit.h"
#include "lib/model/exec.h"
#include "lib/model/launch.h"
#include "lib/model/limits.h"
#include "lib/model/recipe.h"

const char *const step_state_names[_STEP_STATE_N] = { "spooled",  "starting", "running",
						      "stopping", "gone",     "hung" };
const char *const command_kind_names[_COMMAND_KIND_N] = { "launch", "stop",  "kill",
							  "forget", "scan",  "query",
							  "check",  "image", "motion" };

const char *const scan_order_names[_ORDER_N] = { "scan", "verify", "prune", "last_scan" };

static const struct mo_field rank_progress_fields[] = {
	MO_D(rank_progress, rank, MO_INT, "number of the rank", .most = MO_RANKS_MAX),
	MO_D(rank_progress, iteration, MO_INT, "newest iteration that it reported",
	     .most = MO_FIT_ITERATION),
	MO_D(rank_progress, step_ms, MO_REAL, "milliseconds of that iteration",
	     .most = 1000000000000),
	MO_D_ENUM(rank_progress, phase, phase_names, "what the engine does"),
	MO_D(rank_progress, busy_ms, MO_REAL,
	     "milliseconds of it that the rank did not wait for others", .omit = true,
	     .most = 1000000000000),
};
const struct mo_desc rank_progress_desc = MO_DESC(rank_progress, rank_progress_fields);

const char *const process_state_names[_PROCESS_STATE_N] = { "runs", "waits", "stopped" };

#define AGE_MS (1LL << 40)
static const struct mo_field rank_motion_fields[] = {
	MO_D(rank_motion, rank, MO_INT, "number of the rank", .most = MO_RANKS_MAX),
	MO_D(rank_motion, watched_ms, MO_INT,
	     "milliseconds since the agent began to look; no other but those of cards and GPUs is "
	     "more",
	     .most = AGE_MS),
	MO_D(rank_motion, log_ms, MO_INT,
	     "since it last wrote to its log; null, as in the rest: that cannot be read",
	     .most = AGE_MS),
	MO_D(rank_motion, io_ms, MO_INT, "since its processes last read or wrote a good deal",
	     .most = AGE_MS),
	MO_D(rank_motion, cpu_ms, MO_INT, "since its processes last used the processor",
	     .most = AGE_MS),
	MO_D(rank_motion, net_ms, MO_INT,
	     "since the RDMA cards that it sends by, or the XGMI links of its GPU, last moved a "
	     "good deal; null also: they never did since its job came",
	     .most = AGE_MS),
	MO_D(rank_motion, gpu_work_ms, MO_INT,
	     "since its GPU last computed; absent: it is not known to have since its job came",
	     .omit = true, .most = AGE_MS),
	MO_D(rank_motion, gpu_spin_ms, MO_INT,
	     "since its GPU is busy and computes nothing, as in a collective that waits; absent "
	     "also: it does not spin",
	     .omit = true, .most = AGE_MS),
	MO_D_ENUM(rank_motion, state, process_state_names,
		  "of its main process: stopped by a signal, or waits in the kernel (one below it "
		  "too)",
		  .omit = true),
};
const struct mo_desc rank_motion_desc = MO_DESC(rank_motion, rank_motion_fields);

/* of a few thousand threads */
#define PERCENT_MOST 1e6
static const struct mo_field rank_activity_fields[] = {
	MO_D(rank_activity, rank, MO_INT, "number of the rank", .most = MO_RANKS_MAX),
	MO_D(rank_activity, window, MO_INT, "number of the window, ascending", .most = MO_FIT_INT),
	MO_D(rank_activity, cpu_pct, MO_REAL,
	     "percent of it that its processes used a processor, of all threads together; unset, "
	     "as "
	     "in the rest: that cannot be read",
	     .omit = true, .most = PERCENT_MOST),
	MO_D(rank_activity, delay_pct, MO_REAL,
	     "the same, that they could run and had no processor", .omit = true,
	     .most = PERCENT_MOST),
	MO_D(rank_activity, busy_pct, MO_REAL, "percent of it that its GPU was busy", .omit = true,
	     .most = PERCENT_MOST),
	MO_D(rank_activity, mem_pct, MO_REAL,
	     "percent of the bandwidth of the GPU's memory that was used", .omit = true,
	     .most = PERCENT_MOST),
	MO_D(rank_activity, power_w, MO_REAL, "mean power of the GPU, watts", .omit = true,
	     .most = PERCENT_MOST),
};
const struct mo_desc rank_activity_desc = MO_DESC(rank_activity, rank_activity_fields);

static const struct mo_field step_report_fields[] = {
	MO_D(step_report, job, MO_INT, "number of the job"),
	MO_D(step_report, attempt, MO_INT, "number of the attempt"),
	MO_D_ENUM(step_report, state, step_state_names,
		  "state of the step; hung: its supervisor holds the lock and does not answer"),
	MO_D(step_report, written, MO_INT, "highest note number in its journal"),
	MO_D_VEC(step_report, notes, &note_desc,
		 "notes above those that the controller acknowledged", .omit = true,
		 .max = MO_NOTES_PER_SYNC),
	MO_D_VEC(step_report, progress, &rank_progress_desc,
		 "ranks whose progress changed since the last acknowledged beat", .omit = true,
		 .max = MO_GPUS_PER_NODE_MAX),
	MO_D_VEC(step_report, motion, &rank_motion_desc,
		 "what moves of its ranks, while that is asked", .omit = true,
		 .max = MO_GPUS_PER_NODE_MAX),
	MO_D_VEC(step_report, recorder, &rank_recorder_desc,
		 "what the flight recorders of its ranks said, when they were asked", .omit = true,
		 .max = MO_GPUS_PER_NODE_MAX),
	MO_D_VEC(step_report, activity, &rank_activity_desc,
		 "what its ranks did in the newest window, until it is acknowledged", .omit = true,
		 .max = MO_GPUS_PER_NODE_MAX),
	MO_D(step_report, waits, MO_STR,
	     "spooled: which of its GPUs the job before it has not given back yet, and what is "
	     "found",
	     .omit = true, .most = MO_TEXT_MAX),
};
const struct mo_desc step_report_desc = MO_DESC(step_report, step_report_fields);

static const struct mo_field agent_hello_fields[] = {
	MO_D(agent_hello, node, MO_STR, "name of the node", .max = MO_LONGEST_NAME),
	MO_D(agent_hello, boot_id, MO_STR, "which boot of the node this is", .max = 128),
	MO_D(agent_hello, instance, MO_STR, "random, of this start of the agent", .max = 128),
	MO_D(agent_hello, protocol, MO_INT, "version of the protocol"),
	MO_D(agent_hello, version, MO_STR, "version of the agent", .max = 128),
	MO_D(agent_hello, address, MO_STR,
	     "address for MASTER_ADDR; null: the one that the connection comes from", .max = 256),
	MO_D_SUB(agent_hello, info, MO_STRUCT, &nodeinfo_desc, "what the node consists of"),
	MO_D(agent_hello, health, MO_BOOL,
	     "it tells of health: before that nothing is known of the node's checks", .omit = true),
	MO_D(agent_hello, min_uid, MO_INT,
	     "of a root agent: it runs no ranks of accounts below; 0 = of any", .omit = true),
	MO_D(agent_hello, metrics_port, MO_INT, "TCP port at which Prometheus finds its metrics",
	     .most = 65535, .omit = true),
	MO_D_VEC(agent_hello, steps, &step_report_desc, "the steps that it knows, without notes",
		 .max = MO_STEPS_PER_NODE_MAX),
};
const struct mo_desc agent_hello_desc = MO_DESC(agent_hello, agent_hello_fields);

static const struct mo_field step_ack_fields[] = {
	MO_D(step_ack, job, MO_INT, "number of the job"),
	MO_D(step_ack, attempt, MO_INT, "number of the attempt"),
	MO_D(step_ack, through, MO_INT, "highest note number that is stored"),
	MO_D(step_ack, known, MO_BOOL, "false: the controller never stored this step"),
};
const struct mo_desc step_ack_desc = MO_DESC(step_ack, step_ack_fields);

static const struct mo_field agent_welcome_fields[] = {
	MO_D(agent_welcome, epoch, MO_INT, "epoch of the controller"),
	MO_D(agent_welcome, beat_ms, MO_INT, "milliseconds between beats"),
	MO_D_VEC(agent_welcome, steps, &step_ack_desc, "what is stored of each step",
		 .max = MO_STEPS_PER_NODE_MAX),
	MO_D_SUB(agent_welcome, info, MO_OPT, &nodeinfo_desc,
		 "the node as it was known, when the hello lacks a GPU that it had in this boot",
		 .omit = true),
	MO_D(agent_welcome, token, MO_STR,
	     "renew, unbound or expired: what is to be done about the token", .omit = true,
	     .max = 32),
	MO_D(agent_welcome, orders, MO_BOOL, "answers may carry order and id", .omit = true),
	MO_D(agent_welcome, pulls, MO_BOOL, "syncs may carry pulls and images", .omit = true),
	MO_D(agent_welcome, motion, MO_BOOL, "syncs may carry motion", .omit = true),
	MO_D(agent_welcome, doubts, MO_BOOL, "syncs may carry doubts", .omit = true),
	MO_D(agent_welcome, busy, MO_BOOL, "progress may say busy_ms", .omit = true),
	MO_D(agent_welcome, space, MO_BOOL, "results of scans may say free_bytes", .omit = true),
	MO_D(agent_welcome, waits, MO_BOOL, "reports of steps may say waits", .omit = true),
	MO_D(agent_welcome, recorder, MO_BOOL, "reports of steps may say recorder", .omit = true),
	MO_D(agent_welcome, activity, MO_BOOL, "reports of steps may say activity", .omit = true),
	MO_D(agent_welcome, gpus, MO_BOOL, "motion may say gpu_work_ms and gpu_spin_ms",
	     .omit = true),
};
const struct mo_desc agent_welcome_desc = MO_DESC(agent_welcome, agent_welcome_fields);

static const struct mo_field found_checkpoint_fields[] = {
	MO_D(found_checkpoint, iteration, MO_INT, "iteration that it was saved at",
	     .most = MO_FIT_ITERATION),
	MO_D(found_checkpoint, path, MO_STR, "where it lies", .most = MO_TEXT_MAX),
	MO_D(found_checkpoint, bytes, MO_INT, "size in bytes", .most = MO_FIT_INT),
	MO_D(found_checkpoint, complete, MO_BOOL, "all of it is there"),
	MO_D(found_checkpoint, reason, MO_STR, "why not", .most = MO_TEXT_MAX),
	MO_D(found_checkpoint, saved_at, MO_TIME, "when it was saved"),
	MO_D(found_checkpoint, level, MO_STR,
	     "what was checked: marker, sizes or crc; read: all of its bytes, as it is suspected",
	     .omit = true, .max = 16),
	MO_D(found_checkpoint, manifest, MO_STR,
	     "digest of names, sizes, times and inodes of its files", .omit = true, .max = 64),
	MO_D(found_checkpoint, fixed, MO_STR,
	     "parallel sizes without which its format cannot be loaded", .omit = true, .max = 128),
	MO_D(found_checkpoint, held, MO_STR,
	     "why the engine cannot load it as it lies there, though it is whole", .omit = true,
	     .most = MO_TEXT_MAX),
};
const struct mo_desc found_checkpoint_desc = MO_DESC(found_checkpoint, found_checkpoint_fields);

static const struct mo_field unread_state_fields[] = {
	MO_D(unread_state, name, MO_STR,
	     "name of the file, or of the directory with a / at its end", .most = MO_TEXT_MAX),
	MO_D(unread_state, bytes, MO_INT, "size in bytes", .most = MO_FIT_INT),
	MO_D(unread_state, saved_at, MO_TIME, "when it was written"),
	MO_D(unread_state, iteration, MO_INT, "of an entry without its marker, its iteration",
	     .omit = true, .most = MO_FIT_ITERATION),
	MO_D(unread_state, where, MO_STR,
	     "directory in which it lies, where that is not checkpoint.dir", .omit = true,
	     .most = MO_TEXT_MAX),
};
const struct mo_desc unread_state_desc = MO_DESC(unread_state, unread_state_fields);

static const struct mo_field scan_result_fields[] = {
	MO_D(scan_result, job, MO_INT, "number of the job"),
	MO_D(scan_result, attempt, MO_INT,
	     "attempt that it was asked for, or the number that older peers know"),
	MO_D_ENUM(scan_result, order, scan_order_names, "which order it answers", .omit = true),
	MO_D(scan_result, id, MO_INT, "id of that order", .omit = true),
	MO_D(scan_result, error, MO_STR, "why it failed; null: it did not", .most = MO_TEXT_MAX),
	MO_D(scan_result, writable, MO_BOOL, "the directory can be written"),
	MO_D(scan_result, free_bytes, MO_INT, "bytes that are free there for the job's user",
	     .omit = true, .most = MO_FIT_INT),
	MO_D(scan_result, real, MO_STR,
	     "the directory with every link resolved, where that is another text", .omit = true,
	     .most = MO_TEXT_MAX),
	MO_D(scan_result, place, MO_STR,
	     "of what was doubted: same, it lies in the directory; other, it does not",
	     .omit = true, .max = 16),
	MO_D(scan_result, alias, MO_STR, "with same, the part of its path that is the directory",
	     .omit = true, .most = MO_TEXT_MAX),
	MO_D_VEC(scan_result, items, &found_checkpoint_desc, "checkpoints that were found",
		 .max = MO_CHECKPOINTS_MAX),
	MO_D_VEC(scan_result, unread, &unread_state_desc,
		 "what looks like a model's state and cannot be read by the layout, the newest",
		 .omit = true, .max = MO_UNREAD_MAX),
	MO_D(scan_result, unread_more, MO_INT, "how many more of these there are", .omit = true,
	     .most = MO_FIT_INT),
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
	MO_D(agent_sync, node, MO_STR, "name of the node", .max = MO_LONGEST_NAME),
	MO_D(agent_sync, boot_id, MO_STR, "which boot of the node this is", .max = 128),
	MO_D(agent_sync, instance, MO_STR, "of this start of the agent, as in its hello",
	     .max = 128),
	MO_D(agent_sync, epoch, MO_INT, "newest epoch that it obeyed"),
	MO_D(agent_sync, beat, MO_INT, "number of the beat, from 1 in each instance"),
	MO_D(agent_sync, mono_ns, MO_INT,
	     "CLOCK_BOOTTIME of the node when this was sent, nanoseconds"),
	MO_D_VEC(agent_sync, steps, &step_report_desc, "what it says of its steps",
		 .max = MO_STEPS_PER_NODE_MAX),
	MO_D_VEC(agent_sync, scans, &scan_result_desc, "results of scans that are due",
		 .omit = true, .max = MO_STEPS_PER_NODE_MAX),
	MO_D_SUB(agent_sync, health, MO_OPT, &node_health_desc,
		 "what its checks found, until that was acknowledged", .omit = true),
	MO_D_VEC(agent_sync, sensors, &gpu_sensors_desc, "readings of GPUs since the last sync",
		 .omit = true, .max = MO_GPUS_PER_NODE_MAX),
	MO_D_VEC(agent_sync, nics, &nic_sensors_desc, "readings of RDMA cards since the last sync",
		 .omit = true, .max = MO_GPUS_PER_NODE_MAX),
	MO_D(agent_sync, leaving, MO_BOOL, "its machine is going down in order", .omit = true),
	MO_D(agent_sync, pulls, MO_BOOL, "it brings images when it is told to", .omit = true),
	MO_D(agent_sync, motion, MO_BOOL, "it tells what moves of ranks when it is asked",
	     .omit = true),
	MO_D(agent_sync, doubts, MO_BOOL, "it has programs for a check that is thorough",
	     .omit = true),
	MO_D_VEC(agent_sync, images, &image_report_desc, "images that it was told to bring",
		 .omit = true, .max = MO_IMAGES_PER_NODE_MAX),
};
const struct mo_desc agent_sync_desc = MO_DESC(agent_sync, agent_sync_fields);

static const struct mo_field command_fields[] = {
	MO_D(command, epoch, MO_INT, "epoch of the controller that gives it"),
	MO_D_ENUM(command, kind, command_kind_names, "what is to be done"),
	MO_D(command, job, MO_INT, "number of the job", .omit = true),
	MO_D(command, attempt, MO_INT, "attempt, or of a scan the number that older peers know",
	     .omit = true),
	MO_D_ENUM(command, order, scan_order_names, "scan: which order it is", .omit = true),
	MO_D(command, id, MO_INT, "scan: id of that order", .omit = true),
	MO_D(command, node, MO_STR, "node that it is meant for"),
	MO_D(command, boot_id, MO_STR, "boot that it is meant for; null: any", .omit = true),
	MO_D_SUB(command, launch, MO_OPT, &launch_desc, "launch: what is to be started",
		 .omit = true),
	MO_D(command, signal, MO_INT, "stop: signal for the main processes", .omit = true),
	MO_D(command, grace_us, MO_INT, "stop: microseconds until SIGKILL", .omit = true),
	MO_D(command, dir, MO_STR,
	     "scan: the checkpoint directory; query image: the image; query images_remove: its "
	     "digest or a name",
	     .omit = true),
	MO_D_SUB(command, layout, MO_OPT, &ckpt_layout_desc,
		 "scan: where checkpoints lie in it and when one is complete", .omit = true),
	MO_D(command, user, MO_STR, "whose process scans, or looks at the image", .omit = true),
	MO_D(command, level, MO_STR, "scan: what is checked: marker, sizes or crc", .omit = true),
	MO_D(command, allow_root, MO_BOOL, "scan: the submitter may run ranks as root",
	     .omit = true),
	MO_D(command, world, MO_INT, "scan: ranks of the job", .omit = true),
	MO_D_VEC(command, prune, &found_checkpoint_desc, "scan: checkpoints that are removed first",
		 .omit = true, .max = MO_CHECKPOINTS_MAX),
	MO_D_VEC(command, known, &found_checkpoint_desc,
		 "scan: verified ones, of which only the manifest is compared, and announced ones",
		 .omit = true, .max = MO_CHECKPOINTS_MAX),
	MO_D(command, only, MO_INT, "scan: this iteration alone", .omit = true),
	MO_D(command, path, MO_STR, "with only: where it was announced", .omit = true),
	MO_D(command, named, MO_STR,
	     "scan: directory that the recipe named, where the engine's own lies below it",
	     .omit = true),
	MO_D(command, doubt, MO_STR, "with only: path that may be dir by another name",
	     .omit = true),
	MO_D(command, thorough, MO_BOOL, "check: with the programs of doubt", .omit = true),
	MO_D(command, announced, MO_BOOL, "with only: the engine itself said that it is complete",
	     .omit = true),
	MO_D(command, restore, MO_BOOL,
	     "scan: where none is whole, the copy that was kept is put back", .omit = true),
	MO_D(command, part, MO_INT, "with only and level crc: which part of the files",
	     .omit = true),
	MO_D(command, parts, MO_INT, "how many parts there are", .omit = true),
	MO_D(command, query, MO_INT, "query: id of the question", .omit = true),
	MO_D(command, what, MO_STR,
	     "query: log_since, the log of a rank from a time on; env, what its ranks were given; "
	     "exec, a command beside a rank; image, whether "
	     "the image `dir` fits; images, which ones it has; images_remove; without it the log "
	     "of a rank",
	     .omit = true, .max = 32),
	MO_D(command, rank, MO_INT, "query: number of the rank", .omit = true),
	MO_D(command, offset, MO_INT, "query: byte of the log to begin at; -1 = the last lines",
	     .omit = true),
	MO_D(command, lines, MO_INT, "query: so many last lines", .omit = true),
	MO_D(command, since_ms, MO_INT,
	     "query log_since: what was written that many milliseconds ago, or later",
	     .omit = true),
	MO_D(command, wait_ms, MO_INT, "query: milliseconds to wait for more", .omit = true),
	MO_D_LIST(command, argv, MO_STRS, "query exec: the command", .omit = true,
		  .max = EXEC_WORDS_MAX),
	MO_D_SUB(command, image, MO_OPT, &image_order_desc, "image: what the node is to have",
		 .omit = true),
};
const struct mo_desc command_desc = MO_DESC(command, command_fields);

static const struct mo_field sync_reply_fields[] = {
	MO_D(sync_reply, epoch, MO_INT, "epoch of the controller"),
	MO_D(sync_reply, health, MO_INT, "version of the health that is stored", .omit = true),
	MO_D_VEC(sync_reply, acks, &step_ack_desc, "what is stored of each step",
		 .max = MO_STEPS_PER_NODE_MAX),
	MO_D_VEC(sync_reply, commands, &command_desc,
		 "everything that is due, repeated until it shows", .max = MO_STEPS_PER_NODE_MAX),
	MO_D(sync_reply, token, MO_STR,
	     "renew, unbound or expired: what is to be done about the token", .omit = true,
	     .max = 32),
};
const struct mo_desc sync_reply_desc = MO_DESC(sync_reply, sync_reply_fields);

static const struct mo_field query_answer_fields[] = {
	MO_D(query_answer, node, MO_STR, "name of the node", .max = MO_LONGEST_NAME),
	/* a number of ours: all of it counts */
	MO_D(query_answer, query, MO_INT, "id of the question", .most = INT64_MAX),
	MO_D(query_answer, error, MO_STR, "why there is no answer", .most = MO_TEXT_MAX),
	MO_D(query_answer, text, MO_STR, "the answer: bytes of the log made UTF-8, or a document",
	     .max = MO_AGENT_BODY_BYTES_MAX, .most = MO_AGENT_BODY_BYTES_MAX),
	MO_D(query_answer, offset, MO_INT, "where to go on", .most = MO_FIT_INT),
	MO_D(query_answer, more, MO_BOOL, "the log had more than fits an answer"),
	MO_D(query_answer, end, MO_BOOL, "the rank is gone and its log read to the end"),
};
const struct mo_desc query_answer_desc = MO_DESC(query_answer, query_answer_fields);

static const struct mo_field token_trade_fields[] = {
	MO_D(token_trade, node, MO_STR, "node that the new token is for", .max = MO_LONGEST_NAME)
};
static const struct mo_field token_traded_fields[] = {
	MO_D(token_traded, id, MO_STR, "id of the new token", .max = 64),
	MO_D(token_traded, token, MO_STR, "its text", .max = 256),
	MO_D(token_traded, expires_at, MO_TIME, "when it ends"),
};
const struct mo_desc token_trade_desc = MO_DESC(token_trade, token_trade_fields);
const struct mo_desc token_traded_desc = MO_DESC(token_traded, token_traded_fields);
