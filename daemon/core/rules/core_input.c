/* Descriptions of core inputs: the exact keys as which they are printed and stored. */
#include "daemon/core/rules/core_input.h"

const char *const core_input_type_names[_IN_N] = {
	"start",   "clock",        "tick",       "late",    "submit",  "cancel", "pause", "resume",
	"restart", "drain",        "undrain",    "ack",     "fence",   "hello",  "sync",  "news",
	"token",   "token_revoke", "token_used", "refused", "resolve", "config", "store",
};

static const struct mo_field in_caller_fields[] = {
	MO_F(in_caller, user, MO_STR, .omit = true),
	MO_F(in_caller, via, MO_STR, .omit = true),
	MO_F(in_caller, may_all, MO_BOOL, .omit = true),
};
static const struct mo_desc in_caller_desc = MO_DESC(in_caller, in_caller_fields);

static const struct mo_field in_clock_fields[] = {
	MO_F(in_clock, boot_id, MO_STR), MO_F(in_clock, boottime_us, MO_INT),
	MO_F(in_clock, synced, MO_BOOL), MO_F(in_clock, shift_us, MO_INT),
	MO_F(in_clock, told, MO_STR),
};
const struct mo_desc in_clock_desc = MO_DESC(in_clock, in_clock_fields);

static const struct mo_field in_late_fields[] = {
	MO_F(in_late, late_us, MO_INT),
};
const struct mo_desc in_late_desc = MO_DESC(in_late, in_late_fields);

static const struct mo_field in_cancel_fields[] = {
	MO_F(in_cancel, job, MO_INT),
	MO_F(in_cancel, now, MO_BOOL),
};
const struct mo_desc in_cancel_desc = MO_DESC(in_cancel, in_cancel_fields);

static const struct mo_field in_pause_fields[] = {
	MO_F(in_pause, job, MO_INT),
};
const struct mo_desc in_pause_desc = MO_DESC(in_pause, in_pause_fields);

static const struct mo_field in_resume_fields[] = {
	MO_F(in_resume, job, MO_INT),
};
const struct mo_desc in_resume_desc = MO_DESC(in_resume, in_resume_fields);

static const struct mo_field in_restart_fields[] = {
	MO_F(in_restart, job, MO_INT),
	MO_F(in_restart, from_iteration, MO_INT),
};
const struct mo_desc in_restart_desc = MO_DESC(in_restart, in_restart_fields);

static const struct mo_field in_drain_fields[] = {
	MO_F(in_drain, node, MO_STR),
	MO_F(in_drain, reason, MO_STR),
	MO_F(in_drain, when, MO_STR),
};
const struct mo_desc in_drain_desc = MO_DESC(in_drain, in_drain_fields);

static const struct mo_field in_undrain_fields[] = {
	MO_F(in_undrain, node, MO_STR),
};
const struct mo_desc in_undrain_desc = MO_DESC(in_undrain, in_undrain_fields);

static const struct mo_field in_ack_fields[] = {
	MO_F(in_ack, node, MO_STR),
	MO_F(in_ack, check, MO_STR),
	MO_F(in_ack, learned, MO_BOOL),
};
const struct mo_desc in_ack_desc = MO_DESC(in_ack, in_ack_fields);

static const struct mo_field in_fence_fields[] = {
	MO_F(in_fence, node, MO_STR),
	MO_F(in_fence, boot_seen, MO_STR),
};
const struct mo_desc in_fence_desc = MO_DESC(in_fence, in_fence_fields);

static const struct mo_field in_hello_fields[] = {
	MO_F_SUB(in_hello, message, MO_OPT, &agent_hello_desc),
	MO_F(in_hello, token_expired, MO_BOOL),
};
const struct mo_desc in_hello_desc = MO_DESC(in_hello, in_hello_fields);

static const struct mo_field in_sync_fields[] = {
	MO_F_SUB(in_sync, message, MO_OPT, &agent_sync_desc),
	MO_F(in_sync, token_expired, MO_BOOL),
};
const struct mo_desc in_sync_desc = MO_DESC(in_sync, in_sync_fields);

static const struct mo_field in_token_id_fields[] = {
	MO_F(in_token_id, id, MO_STR),
};
const struct mo_desc in_token_id_desc = MO_DESC(in_token_id, in_token_id_fields);

static const struct mo_field in_refused_fields[] = {
	MO_F(in_refused, what, MO_STR),
};
const struct mo_desc in_refused_desc = MO_DESC(in_refused, in_refused_fields);

static const struct mo_field in_resolve_fields[] = {
	MO_F(in_resolve, job, MO_INT),
	MO_F(in_resolve, attempt, MO_INT),
	MO_F(in_resolve, how, MO_STR),
	MO_F(in_resolve, node, MO_STR),
};
const struct mo_desc in_resolve_desc = MO_DESC(in_resolve, in_resolve_fields);

static const struct mo_field in_config_fields[] = {
	MO_F(in_config, job, MO_INT),
	MO_F(in_config, attempt, MO_INT),
	MO_F_SUB(in_config, read, MO_OPT, &config_read_desc),
};
const struct mo_desc in_config_desc = MO_DESC(in_config, in_config_fields);

static const struct mo_field in_store_fields[] = {
	MO_F(in_store, event, MO_STR),
	MO_F(in_store, message, MO_STR),
	MO_F(in_store, node, MO_STR),
};
const struct mo_desc in_store_desc = MO_DESC(in_store, in_store_fields);

static const struct mo_field core_input_fields[] = {
	MO_F_ENUM(core_input, type, core_input_type_names),
	MO_F(core_input, request, MO_INT),
	MO_F_SUB(core_input, by, MO_STRUCT, &in_caller_desc),
	MO_F_SUB(core_input, clock, MO_OPT, &in_clock_desc, .omit = true),
	MO_F_SUB(core_input, late, MO_OPT, &in_late_desc, .omit = true),
	MO_F_SUB(core_input, submit, MO_OPT, &submit_desc, .omit = true),
	MO_F_SUB(core_input, cancel, MO_OPT, &in_cancel_desc, .omit = true),
	MO_F_SUB(core_input, pause, MO_OPT, &in_pause_desc, .omit = true),
	MO_F_SUB(core_input, resume, MO_OPT, &in_resume_desc, .omit = true),
	MO_F_SUB(core_input, restart, MO_OPT, &in_restart_desc, .omit = true),
	MO_F_SUB(core_input, drain, MO_OPT, &in_drain_desc, .omit = true),
	MO_F_SUB(core_input, undrain, MO_OPT, &in_undrain_desc, .omit = true),
	MO_F_SUB(core_input, ack, MO_OPT, &in_ack_desc, .omit = true),
	MO_F_SUB(core_input, fence, MO_OPT, &in_fence_desc, .omit = true),
	MO_F_SUB(core_input, hello, MO_OPT, &in_hello_desc, .omit = true),
	MO_F_SUB(core_input, sync, MO_OPT, &in_sync_desc, .omit = true),
	MO_F_SUB(core_input, token, MO_OPT, &token_desc, .omit = true),
	MO_F_SUB(core_input, token_id, MO_OPT, &in_token_id_desc, .omit = true),
	MO_F_SUB(core_input, refused, MO_OPT, &in_refused_desc, .omit = true),
	MO_F_SUB(core_input, resolve, MO_OPT, &in_resolve_desc, .omit = true),
	MO_F_SUB(core_input, config, MO_OPT, &in_config_desc, .omit = true),
	MO_F_SUB(core_input, store, MO_OPT, &in_store_desc, .omit = true),
};
const struct mo_desc core_input_desc = MO_DESC(core_input, core_input_fields);

void core_input_init(struct core_input *in, int type)
{
	mo_desc_init(&core_input_desc, in);
	in->type = type;
	in->request = 0;
}
