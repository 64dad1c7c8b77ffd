/* Descriptions of core inputs: the exact keys as which they are printed and stored. */
#include "daemon/core/rules/core_input.h"

const char *const core_input_type_names[_IN_N] = {
	"start",  "clock",   "tick",  "late",         "submit",        "cancel",  "pause",
	"resume", "restart", "drain", "undrain",      "ack",           "fence",   "hello",
	"sync",   "news",    "token", "token_revoke", "token_used",    "refused", "resolve",
	"config", "store",   "exec",  "prefetch",     "images_remove", "power",   "fabric",
};

static const struct mo_field in_caller_fields[] = {
	MO_D(in_caller, user, MO_STR, "name of who asks; unset: the controller itself",
	     .omit = true),
	MO_D(in_caller, via, MO_STR, "how he was known: a token by its id, socket or a session",
	     .omit = true),
	MO_D(in_caller, may_all, MO_BOOL, "operator or admin: may act on other users' jobs",
	     .omit = true),
};
static const struct mo_desc in_caller_desc = MO_DESC(in_caller, in_caller_fields);

static const struct mo_field in_clock_fields[] = {
	MO_D(in_clock, boot_id, MO_STR, "boot of the controller's machine"),
	MO_D(in_clock, boottime_us, MO_INT, "CLOCK_BOOTTIME of that boot, microseconds"),
	MO_D(in_clock, synced, MO_BOOL, "a time service vouches for the wall clock"),
	MO_D(in_clock, shift_us, MO_INT, "microseconds by which all stored times move"),
	MO_D(in_clock, told, MO_STR, "what to say of it; unset: nothing"),
};
const struct mo_desc in_clock_desc = MO_DESC(in_clock, in_clock_fields);

static const struct mo_field in_late_fields[] = {
	MO_D(in_late, late_us, MO_INT,
	     "microseconds by which the turn came late: liveness deadlines move by them"),
};
const struct mo_desc in_late_desc = MO_DESC(in_late, in_late_fields);

static const struct mo_field in_cancel_fields[] = {
	MO_D(in_cancel, job, MO_INT, "number of the job"),
	MO_D(in_cancel, now, MO_BOOL, "without the stop signal's grace"),
};
const struct mo_desc in_cancel_desc = MO_DESC(in_cancel, in_cancel_fields);

static const struct mo_field in_pause_fields[] = {
	MO_D(in_pause, job, MO_INT, "number of the job"),
};
const struct mo_desc in_pause_desc = MO_DESC(in_pause, in_pause_fields);

static const struct mo_field in_resume_fields[] = {
	MO_D(in_resume, job, MO_INT, "number of the job"),
};
const struct mo_desc in_resume_desc = MO_DESC(in_resume, in_resume_fields);

static const struct mo_field in_restart_fields[] = {
	MO_D(in_restart, job, MO_INT, "number of the job"),
	MO_D(in_restart, from_iteration, MO_INT,
	     "iteration to go on from; 0: afresh; unset: the newest checkpoint"),
};
const struct mo_desc in_restart_desc = MO_DESC(in_restart, in_restart_fields);

static const struct mo_field in_drain_fields[] = {
	MO_D(in_drain, node, MO_STR, "name of the node"),
	MO_D(in_drain, reason, MO_STR, "why, in words"),
	MO_D(in_drain, when, MO_STR,
	     "when its ranks are to leave: idle, checkpoint or now; unset: idle"),
};
const struct mo_desc in_drain_desc = MO_DESC(in_drain, in_drain_fields);

static const struct mo_field in_undrain_fields[] = {
	MO_D(in_undrain, node, MO_STR, "name of the node"),
	MO_D(in_undrain, force, MO_BOOL, "whatever its GPUs compute", .omit = true),
};
const struct mo_desc in_undrain_desc = MO_DESC(in_undrain, in_undrain_fields);

static const struct mo_field in_ack_fields[] = {
	MO_D(in_ack, node, MO_STR, "name of the node"),
	MO_D(in_ack, check, MO_STR, "id of the check whose findings are known"),
	MO_D(in_ack, learned, MO_BOOL, "instead: the node's time of learning is over"),
};
const struct mo_desc in_ack_desc = MO_DESC(in_ack, in_ack_fields);

static const struct mo_field in_fence_fields[] = {
	MO_D(in_fence, node, MO_STR, "name of the node"),
	MO_D(in_fence, boot_seen, MO_STR,
	     "boot id that the person saw: refused when it booted since; unset: any"),
};
const struct mo_desc in_fence_desc = MO_DESC(in_fence, in_fence_fields);

static const struct mo_field in_hello_fields[] = {
	MO_D_SUB(in_hello, message, MO_OPT, &agent_hello_desc,
		 "what the agent tells of itself and its node"),
	MO_D(in_hello, token_expired, MO_BOOL, "the token that it spoke with has expired"),
};
const struct mo_desc in_hello_desc = MO_DESC(in_hello, in_hello_fields);

static const struct mo_field in_sync_fields[] = {
	MO_D_SUB(in_sync, message, MO_OPT, &agent_sync_desc,
		 "what the agent tells of its steps and its node"),
	MO_D(in_sync, token_expired, MO_BOOL, "the token that it spoke with has expired"),
};
const struct mo_desc in_sync_desc = MO_DESC(in_sync, in_sync_fields);

static const struct mo_field in_token_id_fields[] = {
	MO_D(in_token_id, id, MO_STR, "id of the token that is revoked or was used"),
};
const struct mo_desc in_token_id_desc = MO_DESC(in_token_id, in_token_id_fields);

static const struct mo_field in_refused_fields[] = {
	MO_D(in_refused, what, MO_STR, "what was asked for, and why it was refused"),
};
const struct mo_desc in_refused_desc = MO_DESC(in_refused, in_refused_fields);

static const struct mo_field in_resolve_fields[] = {
	MO_D(in_resolve, job, MO_INT, "number of the job"),
	MO_D(in_resolve, attempt, MO_INT, "number of the attempt"),
	MO_D(in_resolve, how, MO_STR, "what becomes of its steps: kill or gone"),
	MO_D(in_resolve, node, MO_STR, "name of the node; unset: each"),
};
const struct mo_desc in_resolve_desc = MO_DESC(in_resolve, in_resolve_fields);

static const struct mo_field in_config_fields[] = {
	MO_D(in_config, job, MO_INT, "number of the job"),
	MO_D(in_config, attempt, MO_INT, "number of the attempt"),
	MO_D_SUB(in_config, read, MO_OPT, &config_read_desc,
		 "the judgement of what its node read of the engine's own configuration"),
};
const struct mo_desc in_config_desc = MO_DESC(in_config, in_config_fields);

static const struct mo_field in_store_fields[] = {
	MO_D(in_store, event, MO_STR, "type of the event, such as store.slow"),
	MO_D(in_store, message, MO_STR, "what happened, in words"),
	MO_D(in_store, node, MO_STR, "name of the node that it is about; unset: of none"),
};
const struct mo_desc in_store_desc = MO_DESC(in_store, in_store_fields);

static const struct mo_field in_exec_fields[] = {
	MO_D(in_exec, job, MO_INT, "number of the job"),
	MO_D(in_exec, rank, MO_INT, "number of the rank"),
	MO_D_LIST(in_exec, argv, MO_STRS, "the command and its arguments"),
	MO_D(in_exec, admin, MO_BOOL, "who asks is an admin", .omit = true),
};
const struct mo_desc in_exec_desc = MO_DESC(in_exec, in_exec_fields);

static const struct mo_field in_prefetch_fields[] = {
	MO_D(in_prefetch, image, MO_STR, "the image, as a recipe says it"),
	MO_D(in_prefetch, auth_file, MO_STR, "the caller's file with passwords, on the nodes",
	     .omit = true),
	MO_D_LIST(in_prefetch, nodes, MO_STRS, "names of the nodes; none: all that are up"),
	MO_D(in_prefetch, allow_root, MO_BOOL, "the caller may be root on nodes", .omit = true),
};
const struct mo_desc in_prefetch_desc = MO_DESC(in_prefetch, in_prefetch_fields);

static const struct mo_field in_images_remove_fields[] = {
	MO_D(in_images_remove, what, MO_STR, "digest of the image, or a name of it"),
	MO_D_LIST(in_images_remove, nodes, MO_STRS, "names of the nodes; none: all"),
};
const struct mo_desc in_images_remove_desc = MO_DESC(in_images_remove, in_images_remove_fields);

static const struct mo_field in_power_fields[] = {
	MO_D(in_power, node, MO_STR, "name of the node"),
	MO_D(in_power, boot_id, MO_STR, "of the boot that it was in when the command was run"),
	MO_D(in_power, off, MO_BOOL, "the command says that it is off"),
	MO_D(in_power, text, MO_STR, "what the command said, or why it did not run"),
};
const struct mo_desc in_power_desc = MO_DESC(in_power, in_power_fields);

static const struct mo_field in_fabric_fields[] = {
	MO_D(in_fabric, job, MO_INT, "number of the job"),
	MO_D_SUB(in_fabric, found, MO_STRUCT, &fabric_result_desc, "what was found"),
};
const struct mo_desc in_fabric_desc = MO_DESC(in_fabric, in_fabric_fields);

static const struct mo_field core_input_fields[] = {
	MO_D_ENUM(core_input, type, core_input_type_names,
		  "what the shell heard: names the member that says more; start and tick "
		  "have none"),
	MO_D(core_input, request, MO_INT,
	     "the shell's handle of who waits for the answer; 0: nobody"),
	MO_D_SUB(core_input, by, MO_STRUCT, &in_caller_desc, "who asks"),
	MO_D_SUB(core_input, clock, MO_OPT, &in_clock_desc, "the clock was checked, or found wrong",
		 .omit = true),
	MO_D_SUB(core_input, late, MO_OPT, &in_late_desc, "the turn came late", .omit = true),
	MO_D_SUB(core_input, submit, MO_OPT, &submit_desc,
		 "a job to take; empty once its content went into the job", .omit = true),
	MO_D_SUB(core_input, cancel, MO_OPT, &in_cancel_desc, "a job to end", .omit = true),
	MO_D_SUB(core_input, pause, MO_OPT, &in_pause_desc, "a job to stop for a while",
		 .omit = true),
	MO_D_SUB(core_input, resume, MO_OPT, &in_resume_desc, "a paused job to go on with",
		 .omit = true),
	MO_D_SUB(core_input, restart, MO_OPT, &in_restart_desc,
		 "a job to begin again from a checkpoint", .omit = true),
	MO_D_SUB(core_input, drain, MO_OPT, &in_drain_desc, "a node to keep new work from",
		 .omit = true),
	MO_D_SUB(core_input, undrain, MO_OPT, &in_undrain_desc, "a node to give work to again",
		 .omit = true),
	MO_D_SUB(core_input, ack, MO_OPT, &in_ack_desc, "findings that somebody knows of",
		 .omit = true),
	MO_D_SUB(core_input, fence, MO_OPT, &in_fence_desc, "a node that somebody says is off",
		 .omit = true),
	MO_D_SUB(core_input, hello, MO_OPT, &in_hello_desc, "an agent registers", .omit = true),
	MO_D_SUB(core_input, sync, MO_OPT, &in_sync_desc, "an agent's beat or urgent message",
		 .omit = true),
	MO_D_SUB(core_input, token, MO_OPT, &token_desc,
		 "a token to keep, with everything filled; with its `from`: traded for that one",
		 .omit = true),
	MO_D_SUB(core_input, token_id, MO_OPT, &in_token_id_desc,
		 "a token to revoke, or one that was used", .omit = true),
	MO_D_SUB(core_input, refused, MO_OPT, &in_refused_desc,
		 "somebody was refused what he asked for", .omit = true),
	MO_D_SUB(core_input, resolve, MO_OPT, &in_resolve_desc,
		 "what becomes of steps on which controller and node disagree", .omit = true),
	MO_D_SUB(core_input, config, MO_OPT, &in_config_desc,
		 "the engine's own configuration was judged", .omit = true),
	MO_D_SUB(core_input, store, MO_OPT, &in_store_desc,
		 "what the shell tells of its store, or of a node", .omit = true),
	MO_D_SUB(core_input, exec, MO_OPT, &in_exec_desc, "a command to run beside a rank",
		 .omit = true),
	MO_D_SUB(core_input, prefetch, MO_OPT, &in_prefetch_desc,
		 "an image that nodes are to have before a job needs it", .omit = true),
	MO_D_SUB(core_input, images_remove, MO_OPT, &in_images_remove_desc,
		 "images that are to go from nodes", .omit = true),
	MO_D_SUB(core_input, power, MO_OPT, &in_power_desc,
		 "what the site's fence_command did about a silent node", .omit = true),
	MO_D_SUB(core_input, fabric, MO_OPT, &in_fabric_desc,
		 "what a check of the fabric over a job's nodes found", .omit = true),
};
const struct mo_desc core_input_desc = MO_DESC(core_input, core_input_fields);

void core_input_init(struct core_input *in, int type)
{
	mo_desc_init(&core_input_desc, in);
	in->type = type;
	in->request = 0;
}
