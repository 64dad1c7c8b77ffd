/* Descriptions of what moed keeps, and finding things in it. Called by everyone; changes
 * nothing. */
#include "daemon/core/state/state.h"
#include "daemon/core/state/shared.h"
#include "lib/model/limits.h"

#include <assert.h>
#include <string.h>

const char *const intent_names[_INTENT_N] = { "none",    "cancel", "pause",
					      "restart", "drain",  "time-limit" };

static const struct mo_field promise_fields[] = {
	MO_F(promise, step_time_s, MO_REAL), MO_F(promise, memory_gb, MO_REAL),
	MO_F(promise, bubble, MO_REAL),      MO_F(promise, error_pct, MO_REAL),
	MO_F(promise, anchors, MO_INT),
};
static const struct mo_field measured_fields[] = {
	MO_F(measured, step_time_s, MO_REAL), MO_F(measured, memory_gb, MO_REAL),
	MO_F(measured, steps, MO_INT),        MO_F(measured, attempt, MO_INT),
	MO_F(measured, iteration, MO_INT),    MO_F(measured, time, MO_TIME),
};
const struct mo_desc promise_desc = MO_DESC(promise, promise_fields);
const struct mo_desc measured_desc = MO_DESC(measured, measured_fields);
static const struct mo_field anchor_fields[] = {
	MO_F(anchor, software, MO_STR),
	MO_F(anchor, version, MO_STR),
	MO_F(anchor, gpu, MO_STR),
	MO_F(anchor, precision, MO_STR),
	MO_F(anchor, model, MO_STR),
	MO_F(anchor, job, MO_INT),
	MO_F_SUB(anchor, measured, MO_STRUCT, &measured_desc),
	MO_F(anchor, recipe_text, MO_STR),
	MO_F_SUB(anchor, recipe, MO_STRUCT, &recipe_desc),
};
static const struct mo_field config_read_fields[] = {
	MO_F(config_read, hash, MO_STR, .omit = true),
	MO_F(config_read, refused, MO_STR, .omit = true),
	MO_F(config_read, unjudged, MO_STR, .omit = true),
	MO_F(config_read, directory, MO_STR, .omit = true),
	MO_F(config_read, directory_said, MO_STR, .omit = true),
	MO_F_LIST(config_read, warnings, MO_STRS, .omit = true),
	MO_F_SUB(config_read, recipe, MO_OPT, &recipe_desc, .omit = true),
	MO_F_SUB(config_read, promise, MO_OPT, &promise_desc, .omit = true),
};
const struct mo_desc config_read_desc = MO_DESC(config_read, config_read_fields);
const struct mo_desc anchor_desc = MO_DESC(anchor, anchor_fields);
static const struct mo_field engine_own_fields[] = {
	MO_F_VEC(engine_own, rules, &line_rule_desc),
	MO_F_LIST(engine_own, resume, MO_STRS),
	MO_F_SUB(engine_own, layout, MO_STRUCT, &ckpt_layout_desc),
	MO_F_VEC(engine_own, owned, &kv_desc),
};
const struct mo_desc engine_own_desc = MO_DESC(engine_own, engine_own_fields);
static const struct mo_field submit_fields[] = {
	MO_F(submit, user, MO_STR),
	MO_F(submit, allow_root, MO_BOOL),
	MO_F(submit, idempotency_key, MO_STR),
	MO_F(submit, digest, MO_STR),
	MO_F(submit, recipe_text, MO_STR),
	MO_F_SUB(submit, recipe, MO_STRUCT, &recipe_desc),
	MO_F_SUB(submit, engine, MO_STRUCT, &engine_desc),
	MO_F_LIST(submit, argv, MO_STRS),
	MO_F_LIST(submit, prepare, MO_STRS, .omit = true),
	MO_F(submit, heartbeat_dir, MO_STR, .omit = true),
	MO_F_VEC(submit, env, &env_item_desc),
	MO_F_VEC(submit, profiles, &env_profile_desc),
	MO_F_LIST(submit, warnings, MO_STRS),
	MO_F(submit, peak_tflops, MO_REAL),
	MO_F_SUB(submit, promise, MO_OPT, &promise_desc, .omit = true),
	MO_F(submit, parts, MO_INT, .omit = true),
	MO_F_SUB(submit, own, MO_OPT, &engine_own_desc, .omit = true),
};
static const struct mo_field place_fields[] = {
	MO_F(place, node, MO_STR),
	MO_F(place, first_rank, MO_INT),
	MO_F(place, n_ranks, MO_INT),
	MO_F_LIST(place, gpus, MO_INTS),
};
static const struct mo_field prepared_fields[] = {
	MO_D(prepared, node, MO_STR, "name of the node"),
	MO_D(prepared, ms, MO_INT, "milliseconds that it took there"),
};
const struct mo_desc prepared_desc = MO_DESC(prepared, prepared_fields);
static const struct mo_field step_fields[] = {
	MO_F(step, node, MO_STR),
	MO_F(step, boot_id, MO_STR),
	MO_F(step, attempt, MO_INT),
	MO_F(step, through, MO_INT),
	MO_F(step, accepted, MO_BOOL),
	MO_F(step, started, MO_BOOL),
	MO_F(step, refused, MO_BOOL),
	MO_F(step, gone, MO_BOOL),
	MO_F(step, gone_how, MO_STR),
	MO_F(step, forgotten, MO_BOOL),
	MO_F(step, hung, MO_BOOL),
	MO_F(step, refused_cause, MO_STR),
	MO_F(step, refused_text, MO_STR),
	MO_F(step, lost, MO_BOOL),
	MO_F(step, ended, MO_BOOL),
	MO_F(step, unkillable, MO_BOOL),
	MO_F_LIST(step, stuck_pids, MO_INTS),
	MO_F(step, first_rank, MO_INT),
	MO_F(step, n_ranks, MO_INT),
	MO_F(step, n_exited, MO_INT),
	MO_F(step, n_bad, MO_INT),
	MO_F(step, missing, MO_BOOL, .omit = true),
	MO_F(step, prepared, MO_BOOL, .omit = true),
	MO_F(step, outside, MO_BOOL, .omit = true),
};
static const struct mo_field job_fields[] = {
	MO_F(job, id, MO_INT),
	MO_F_SUB(job, spec, MO_STRUCT, &submit_desc),
	MO_F_ENUM(job, state, job_state_names),
	MO_F(job, attempt, MO_INT),
	MO_F(job, restarts, MO_INT),
	MO_F_ENUM(job, intent, intent_names),
	MO_F(job, intent_now, MO_BOOL),
	MO_F(job, restart_from, MO_INT),
	MO_F(job, reason, MO_STR),
	MO_FP(job, config, text, "config", MO_STR, .omit = true, .max = MO_CONFIG_BYTES_MAX),
	MO_FP(job, config, node, "config_node", MO_STR, .omit = true),
	MO_FP(job, config, due, "config_due", MO_BOOL, .omit = true),
	MO_FP(job, config, attempt, "config_attempt", MO_INT, .omit = true),
	MO_FP(job, config, hash, "config_hash", MO_STR, .omit = true),
	MO_FP(job, config, refused, "config_refused", MO_STR, .omit = true),
	MO_FP(job, saves, by_config, "saves_to", MO_STR, .omit = true),
	MO_FP_VEC(job, run, prepared, "prepared", &prepared_desc, .omit = true),
	MO_F(job, prepare_us, MO_INT, .omit = true),
	MO_F(job, created_at, MO_INT),
	MO_F(job, started_at, MO_INT),
	MO_F(job, ended_at, MO_INT),
	MO_F(job, state_since, MO_INT),
	MO_F(job, queued_since, MO_INT),
	MO_F(job, not_before, MO_INT),
	MO_FP_VEC(job, run, places, "places", &place_desc),
	MO_FP(job, run, port, "port", MO_INT),
	MO_F_VEC(job, steps, &step_desc),
	MO_FP_VEC(job, run, ranks, "ranks", &rank_desc),
	MO_FP(job, scan, attempt, "scan_attempt", MO_INT),
	MO_FP(job, scan, error, "scan_error", MO_STR),
	MO_FP(job, run, resume, "resume", MO_INT),
	MO_F_VEC(job, checkpoints, &checkpoint_desc),
	MO_FP(job, progress, iteration, "iteration", MO_INT),
	MO_FP(job, progress, watermark, "watermark", MO_INT),
	MO_FP(job, progress, at, "progress_at", MO_INT),
	MO_FP_ENUM(job, progress, phase, "phase", phase_names),
	MO_FP_VEC(job, progress, samples, "samples", &sample_desc),
	MO_FP(job, progress, loss, "loss", MO_REAL),
	MO_FP(job, progress, tokens_per_s_per_gpu, "tokens_per_s_per_gpu", MO_REAL),
	MO_FP(job, progress, tflops_per_gpu, "tflops_per_gpu", MO_REAL),
	MO_FP(job, progress, mfu, "mfu", MO_REAL),
	MO_FP(job, failure, decided, "failed", MO_BOOL),
	MO_FP(job, failure, at, "failed_at", MO_INT),
	MO_FP(job, failure, rank, "first_rank", MO_INT),
	MO_FP(job, failure, node, "fail_node", MO_STR),
	MO_FP(job, failure, class, "fail_class", MO_STR),
	MO_FP(job, failure, cause, "fail_cause", MO_STR),
	MO_FP_LIST(job, failure, evidence, "fail_evidence", MO_STRS),
	MO_FP(job, failure, exit_mono_ns, "first_exit_mono_ns", MO_INT),
	MO_FP(job, failure, exit0_at, "first_exit0_at", MO_INT),
	MO_FP(job, streak, same, "same_failures", MO_INT),
	MO_FP(job, streak, signature, "last_signature", MO_STR),
	MO_FP(job, streak, checkpoint, "last_signature_checkpoint", MO_INT),
	MO_FP(job, failure, waiting_node, "waiting_node", MO_BOOL),
	MO_F_VEC(job, incidents, &incident_desc),
	MO_F_LIST(job, ledger, MO_INTS),
	MO_F(job, ledger_at, MO_INT),
	MO_F(job, after_failure, MO_BOOL),
	MO_FP(job, scan, at, "scan_at", MO_INT),
	MO_FP(job, scan, writable, "scan_writable", MO_BOOL),
	MO_FP(job, saves, path_refused, "path_refused", MO_BOOL),
	MO_FP(job, saves, elsewhere, "elsewhere", MO_STR, .omit = true),
	MO_FP(job, saves, began, "began_elsewhere", MO_STR, .omit = true),
	MO_FP(job, saves, began_at, "began_at", MO_INT, .omit = true),
	MO_FP(job, saves, doubt, "doubt", MO_STR, .omit = true),
	MO_FP(job, saves, doubt_at, "doubt_at", MO_INT, .omit = true),
	MO_FP(job, saves, refused, "refused", MO_STR, .omit = true),
	MO_FP(job, saves, refused_at, "refused_at", MO_INT, .omit = true),
	MO_FP(job, scan, at_end, "end_scan", MO_BOOL),
	MO_FP(job, saves, every, "every", MO_INT),
	MO_FP(job, saves, n, "n_saves", MO_INT),
	MO_FP(job, progress, left_out, "left_out", MO_INT),
	MO_FP(job, progress, spike, "spike", MO_INT),
	MO_FP(job, verify, iteration, "verify", MO_INT),
	MO_FP(job, verify, serial, "verify_serial", MO_INT),
	MO_FP(job, verify, parts, "verify_parts", MO_INT),
	MO_FP(job, verify, done, "verify_done", MO_INT),
	MO_FP(job, streak, ports_busy, "port_tries", MO_INT),
	MO_FP(job, streak, cycles, "cycles", MO_INT),
	MO_FP(job, counts, started, "n_started", MO_INT),
	MO_FP(job, counts, dead, "n_dead", MO_INT),
	MO_FP(job, counts, trouble, "n_trouble", MO_INT),
	MO_FP(job, counts, exited, "n_exited", MO_INT),
	MO_FP(job, counts, silent, "n_silent", MO_INT),
	MO_FP(job, counts, drained, "n_drained", MO_INT),
	MO_FP(job, counts, forgotten, "n_forgotten", MO_INT),
	MO_FP(job, waterfall, stage, "waterfall_stage", MO_INT),
	MO_FP(job, waterfall, at, "waterfall_at", MO_INT),
	MO_FP(job, waterfall, lost_mark, "lost_mark", MO_INT),
	MO_FP(job, failure, detect_us, "detect_us", MO_INT),
	MO_FP(job, waterfall, gone_at, "gone_at", MO_INT),
	MO_F(job, unheard, MO_BOOL),
	MO_FP(job, saves, dir, "checkpoint_dir", MO_STR),
	MO_FP(job, saves, real, "checkpoint_real", MO_STR, .omit = true),
	MO_FP_SUB(job, progress, measured, "measured", MO_OPT, &measured_desc, .omit = true),
	MO_FP_LIST(job, checks, nodes, "check_nodes", MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_FP_LIST(job, checks, done, "check_done", MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_FP(job, checks, attempt, "check_attempt", MO_INT, .omit = true),
	MO_FP(job, checks, until, "check_until", MO_INT, .omit = true),
	MO_F(job, attempt_floor, MO_INT, .omit = true),
	MO_F(job, events_gone, MO_INT, .omit = true),
	MO_F(job, let_go, MO_INT, .omit = true),
	MO_FP_VEC(job, scan, unread, "unread", &unread_state_desc, .omit = true),
	MO_FP(job, scan, unread_more, "unread_more", MO_INT, .omit = true),
	MO_FP_VEC(job, scan, passed_over, "passed_over", &unread_state_desc, .omit = true),
};
static const struct mo_field node_fields[] = {
	MO_F(node, name, MO_STR),
	MO_FP(node, boot, id, "boot_id", MO_STR),
	MO_FP(node, agent, instance, "instance", MO_STR),
	MO_FP(node, agent, version, "version", MO_STR),
	MO_FP(node, agent, address, "address", MO_STR),
	MO_FP(node, agent, protocol, "protocol", MO_INT),
	MO_F_SUB(node, info, MO_STRUCT, &nodeinfo_desc),
	MO_F_ENUM(node, state, node_state_names),
	MO_F(node, reason, MO_STR),
	MO_FP(node, drain, asked, "drain", MO_BOOL),
	MO_FP(node, drain, when, "drain_when", MO_STR),
	MO_FP(node, strays, any, "strange_steps", MO_BOOL),
	MO_F(node, registered_at, MO_INT),
	MO_FP(node, findings, learn_until, "learn_until", MO_INT, .omit = true),
	MO_FP(node, agent, reconciled, "reconciled", MO_BOOL),
	MO_FP_LIST(node, boot, past, "past_boots", MO_STRS),
	MO_FP_LIST(node, agent, past, "past_instances", MO_STRS),
	MO_FP(node, drain, at, "drain_at", MO_INT),
	MO_FP(node, drain, done, "drained", MO_BOOL),
	MO_FP(node, drain, reason, "drain_reason", MO_STR, .omit = true),
	MO_FP(node, agent, tells_health, "tells_health", MO_BOOL, .omit = true),
	MO_F_SUB(node, health, MO_OPT, &node_health_desc, .omit = true),
	MO_FP(node, drain, cordon, "cordon", MO_STR, .omit = true),
	MO_FP_LIST(node, findings, waived, "waived", MO_STRS, .omit = true),
	MO_FP_LIST(node, findings, waived_counts, "waived_counts", MO_INTS, .omit = true),
	MO_FP_LIST(node, findings, acked, "acked", MO_STRS, .omit = true),
	MO_FP_LIST(node, findings, acked_counts, "acked_counts", MO_INTS, .omit = true),
	MO_FP(node, drain, hardware, "cordon_hardware", MO_BOOL, .omit = true),
	MO_FP(node, boot, leaving, "leaving", MO_BOOL, .omit = true),
	MO_FP(node, agent, token_expired, "token_expired", MO_BOOL, .omit = true),
	MO_FP(node, agent, min_uid, "min_uid", MO_INT, .omit = true),
	MO_F(node, events_gone, MO_INT, .omit = true),
	MO_FP_LIST(node, strays, steps, "strange", MO_STRS, .omit = true),
	MO_FP_LIST(node, strays, discard, "discard", MO_STRS, .omit = true),
	MO_FP(node, agent, obeys, "obeys", MO_INT, .omit = true),
	MO_F(node, unseen, MO_BOOL, .omit = true),
};
static const struct mo_field token_fields[] = {
	MO_F(token, id, MO_STR),
	MO_F(token, hash, MO_STR),
	MO_F(token, role, MO_STR),
	MO_F(token, user, MO_STR),
	MO_F(token, created_at, MO_INT),
	MO_F(token, expires_at, MO_INT),
	MO_F(token, revoked, MO_BOOL),
	MO_F(token, from, MO_STR, .omit = true),
	MO_F(token, used, MO_BOOL, .omit = true),
	MO_F(token, nodes, MO_INT, .omit = true),
	MO_F_LIST(token, joined, MO_STRS, .omit = true, .max = UINT32_MAX),
	MO_F(token, revoked_at, MO_INT, .omit = true),
	MO_F(token, tries, MO_INT, .omit = true),
};
static const struct mo_field idem_fields[] = {
	MO_F(idem, caller, MO_STR), MO_F(idem, key, MO_STR),  MO_F(idem, digest, MO_STR),
	MO_F(idem, job, MO_INT),    MO_F(idem, time, MO_INT),
};
const struct mo_desc submit_desc = {
	.name = "submit",
	.size = sizeof(struct submit),
	.fields = submit_fields,
	.n_fields = ELEMENTSOF(submit_fields),
	.before_done = submit_unshare,
};
const struct mo_desc place_desc = MO_DESC(place, place_fields);
const struct mo_desc step_desc = MO_DESC(step, step_fields);
const struct mo_desc job_desc = MO_DESC(job, job_fields);
const struct mo_desc node_desc = MO_DESC(node, node_fields);
const struct mo_desc token_desc = MO_DESC(token, token_fields);
const struct mo_desc idem_desc = MO_DESC(idem, idem_fields);

/* A snapshot is our own text: its lists may be as long as the limits of limits.h let them grow. */
static const struct mo_field state_fields[] = {
	MO_F(state, epoch, MO_INT),
	MO_F(state, next_job, MO_INT),
	MO_F(state, next_port, MO_INT),
	MO_F(state, next_event_seq, MO_INT),
	MO_F(state, time, MO_INT),
	MO_F_APART(state, jobs, &job_desc, .max = UINT32_MAX),
	MO_F_APART(state, nodes, &node_desc, .max = UINT32_MAX),
	MO_F_VEC(state, events, &event_desc, .max = UINT32_MAX),
	MO_F_VEC(state, tokens, &token_desc, .max = UINT32_MAX),
	MO_F_VEC(state, idems, &idem_desc, .max = UINT32_MAX),
	MO_F_VEC(state, anchors, &anchor_desc, .omit = true),
	MO_F_LIST(state, aside, MO_INTS, .omit = true, .max = UINT32_MAX),
	MO_F(state, clock_boot_id, MO_STR, .omit = true),
	MO_F(state, clock_time, MO_INT, .omit = true),
	MO_F(state, clock_boot, MO_INT, .omit = true),
	MO_F(state, clock_doubt, MO_INT, .omit = true),
	MO_F(state, restored_jobs, MO_INT, .omit = true),
	MO_F(state, restored_wait, MO_INT, .omit = true),
	MO_F(state, born, MO_INT, .omit = true),
};
const struct mo_desc state_desc = MO_DESC(state, state_fields);

int64_t job_next_attempt(const struct job *j)
{
	return MO_MAX(j->attempt, j->attempt_floor) + 1;
}

bool job_at(const struct state *s, int64_t id, size_t *ret)
{
	size_t low = 0, high = s->n_jobs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->jobs[mid]->id < id)
			low = mid + 1;
		else
			high = mid;
	}
	*ret = low;
	return low < s->n_jobs && s->jobs[low]->id == id;
}

const struct job *job_find(const struct state *s, int64_t id)
{
	size_t at;

	return job_at(s, id, &at) ? s->jobs[at] : NULL;
}

size_t state_n_holders(const struct state *s)
{
	return s->holders ? s->n_holders : s->n_jobs;
}

const struct job *state_holder(const struct state *s, size_t i)
{
	return s->holders ? job_find(s, s->holders[i]) : s->jobs[i];
}

bool node_at(const struct state *s, const char *name, size_t *ret)
{
	size_t low = 0, high = s->n_nodes;

	while (name && low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(s->nodes[mid]->name, name);

		if (order == 0) {
			*ret = mid;
			return true;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*ret = low;
	return false;
}

const struct node *node_find(const struct state *s, const char *name)
{
	size_t at;

	return node_at(s, name, &at) ? s->nodes[at] : NULL;
}

/* Steps stand in the order of their attempts, those of one attempt in node-name order. */
const struct step *step_find(const struct job *j, int64_t attempt, const char *node)
{
	size_t low = 0, high = j->n_steps;

	if (!node)
		return NULL;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct step *s = &j->steps[mid];
		int order = s->attempt != attempt ? (s->attempt < attempt ? -1 : 1)
						  : strcmp(s->node, node);

		if (order == 0)
			return s->forgotten ? NULL : &j->steps[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const struct step *step_next(const struct job *j, const char *node, int64_t after)
{
	for (;;) {
		size_t low = 0, high = j->n_steps;
		const struct step *st;

		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (j->steps[mid].attempt <= after)
				low = mid + 1;
			else
				high = mid;
		}
		if (low == j->n_steps)
			return NULL;
		after = j->steps[low].attempt;
		st = step_find(j, after, node);
		if (st)
			return st;
	}
}

const struct place *place_of(const struct job *j, const char *node)
{
	size_t low = 0, high = j->run.n_places;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(j->run.places[mid].node, node);

		if (order == 0)
			return &j->run.places[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

int64_t job_gpus(const struct job *j)
{
	return j->spec.recipe.gpus;
}

int64_t job_world(const struct job *j)
{
	if (j->spec.engine.processes != PROCESS_PER_NODE)
		return job_gpus(j);
	return (int64_t)(j->run.n_places ? j->run.n_places : j->run.n_ranks ? j->run.n_ranks : 1);
}

bool step_dead(const struct step *s)
{
	return s->gone || s->unkillable;
}

bool job_live(const struct job *j)
{
	for (size_t i = 0; i < j->n_steps; i++)
		if (!step_dead(&j->steps[i]))
			return true;
	return false;
}

int64_t state_newest_checkpoint(const struct job *j)
{
	int64_t newest = MO_NONE;

	for (size_t i = 0; i < j->n_checkpoints; i++) {
		const struct checkpoint *c = &j->checkpoints[i];

		if ((c->state == CKPT_COMPLETE || c->state == CKPT_VERIFIED ||
		     c->state == CKPT_PINNED) &&
		    c->iteration > newest)
			newest = c->iteration;
	}
	return newest;
}
