/* Descriptions of job.h, and finding things in a job. */
#include "daemon/core/state/job.h"

#include <string.h>

#include "daemon/core/state/data_order.h"
#include "daemon/core/state/numbers.h"
#include "daemon/core/state/pace.h"
#include "lib/base/util.h"
#include "lib/model/limits.h"

const char *const intent_names[_INTENT_N] = { "none",    "cancel", "pause",
					      "restart", "drain",  "time-limit" };

const char *const hang_stage_names[_HANG_STAGE_N] = { "suspected", "confirmed" };

const char *const straggler_sign_names[_STRAGGLER_SIGN_N] = { "step", "clock", "processor",
							      "idle", "work",  "own" };

static const struct mo_field found_straggler_fields[] = {
	MO_D(found_straggler, attempt, MO_INT, "number of the attempt that it made slow"),
	MO_D(found_straggler, rank, MO_INT, "number of the rank"),
	MO_D(found_straggler, at, MO_TIME, "when it was found"),
	MO_D(found_straggler, node, MO_STR, "name of its node"),
	MO_D(found_straggler, lost_pct, MO_REAL, "percent of its time that the job lost by it"),
	MO_D(found_straggler, left, MO_BOOL, "the job moved away from the node by it",
	     .omit = true),
};
const struct mo_desc found_straggler_desc = MO_DESC(found_straggler, found_straggler_fields);

static const struct mo_field config_read_fields[] = {
	MO_D(config_read, hash, MO_STR, "of the files there", .omit = true),
	MO_D(config_read, refused, MO_STR,
	     "what they break together with the recipe, with FILE:LINE; null: nothing",
	     .omit = true),
	MO_D(config_read, unjudged, MO_STR,
	     "why nothing can be said of them; null: they were judged", .omit = true),
	MO_D(config_read, directory, MO_STR,
	     "where the engine saves by them; null: where the recipe says, or unknown",
	     .omit = true),
	MO_D(config_read, directory_said, MO_STR, "place of the last name in them that says so",
	     .omit = true),
	MO_D_LIST(config_read, warnings, MO_STRS, "what is to be said of them, a line each",
		  .omit = true),
	MO_D_SUB(config_read, recipe, MO_OPT, &recipe_desc,
		 "the recipe with what they say; null: refused or unjudged", .omit = true),
	MO_D_SUB(config_read, promise, MO_OPT, &promise_desc,
		 "the plan with them; null: it can say nothing", .omit = true),
};
const struct mo_desc config_read_desc = MO_DESC(config_read, config_read_fields);
static const struct mo_field prepared_fields[] = {
	MO_D(prepared, node, MO_STR, "name of the node"),
	MO_D(prepared, ms, MO_INT, "milliseconds that it took there"),
};
const struct mo_desc prepared_desc = MO_DESC(prepared, prepared_fields);
static const struct mo_field ledger_mark_fields[] = {
	MO_D(ledger_mark, at, MO_INT, "moment, us"),
	MO_D_LIST(ledger_mark, us, MO_INTS, "GPU-microseconds of each category until then",
		  .omit = true),
};
const struct mo_desc ledger_mark_desc = MO_DESC(ledger_mark, ledger_mark_fields);
static const struct mo_field place_fields[] = {
	MO_D(place, node, MO_STR, "name of the node"),
	MO_D(place, first_rank, MO_INT, "lowest rank there"),
	MO_D(place, n_ranks, MO_INT, "how many ranks follow one another there"),
	MO_D_LIST(place, gpus, MO_INTS, "indexes of the GPUs that they have there"),
};
const struct mo_desc place_desc = MO_DESC(place, place_fields);
static const struct mo_field step_fields[] = {
	MO_D(step, node, MO_STR, "name of the node"),
	MO_D(step, boot_id, MO_STR,
	     "boot that the launch was made for: it is repeated only to this one"),
	MO_D(step, attempt, MO_INT, "number of the attempt"),
	MO_D(step, through, MO_INT, "number of the newest note that was applied"),
	MO_D(step, accepted, MO_BOOL, "the agent reported it: a launch is no longer due"),
	MO_D(step, started, MO_BOOL, "its note of running was seen"),
	MO_D(step, refused, MO_BOOL, "its launch was refused"),
	MO_D(step, gone, MO_BOOL, "proved: by its last note, another boot of the node, or a fence"),
	MO_D(step, gone_how, MO_STR, "what proved that"),
	MO_D(step, forgotten, MO_BOOL, "the agent dropped it"),
	MO_D(step, hung, MO_BOOL,
	     "the supervisor or the agent cannot tell of it, which proves no death"),
	MO_D(step, refused_cause, MO_STR, "word for why it was refused"),
	MO_D(step, refused_text, MO_STR, "the agent's sentence about that"),
	MO_D(step, lost, MO_BOOL, "its supervisor died"),
	MO_D(step, ended, MO_BOOL, "its last note was applied: nothing more comes"),
	MO_D(step, unkillable, MO_BOOL,
	     "every rank is reaped or hangs in the kernel with SIGKILL pending"),
	MO_D_LIST(step, stuck_pids, MO_INTS, "process ids of those that hang in the kernel"),
	MO_D(step, first_rank, MO_INT, "lowest rank in it"),
	MO_D(step, n_ranks, MO_INT, "how many ranks it has"),
	MO_D(step, n_exited, MO_INT, "how many ranks exited"),
	MO_D(step, n_bad, MO_INT, "how many ranks did not end with code 0"),
	MO_D(step, missing, MO_BOOL, "hung because the agent no longer knows it", .omit = true),
	MO_D(step, prepared, MO_BOOL, "how long its preparation took is in the job's sum",
	     .omit = true),
	MO_D(step, outside, MO_BOOL, "somebody on its machine stopped it, not the controller",
	     .omit = true),
	MO_D_ENUM(step, pause, phase_names, "save or evaluation that is not over by its words",
		  .omit = true),
	MO_D(step, pause_rank, MO_INT, "the rank that spoke of that", .omit = true),
};
const struct mo_desc step_desc = MO_DESC(step, step_fields);
static const struct mo_field job_fields[] = {
	MO_D(job, id, MO_INT, "the n of j-n, never used again"),
	MO_D_SUB(job, spec, MO_STRUCT, &submit_desc, "what was submitted"),
	MO_D_ENUM(job, state, job_state_names, "where it stands"),
	MO_D(job, attempt, MO_INT, "number of the newest attempt; 0: none yet"),
	MO_D(job, restarts, MO_INT, "attempts after a failure only"),
	MO_D_ENUM(job, intent, intent_names, "why a planned stop is under way"),
	MO_D(job, intent_now, MO_BOOL, "the stop gives no grace"),
	MO_D(job, restart_from, MO_INT,
	     "iteration that an operator wants it to go on from; MO_NONE: the newest usable"),
	MO_D(job, reason, MO_STR, "of its state, for a person"),
	MO_DP(job, config, text, "config", MO_STR,
	      "the engine's own configuration as a node read it; null: none did", .omit = true,
	      .max = MO_CONFIG_BYTES_MAX),
	MO_DP(job, config, node, "config_node", MO_STR, "name of the node that read it",
	      .omit = true),
	MO_DP(job, config, due, "config_due", MO_BOOL, "it is not judged yet", .omit = true),
	MO_DP(job, config, attempt, "config_attempt", MO_INT,
	      "newest attempt whose first node reported one; MO_NONE: none", .omit = true),
	MO_DP(job, config, hash, "config_hash", MO_STR, "of the files there, once it is judged",
	      .omit = true),
	MO_DP(job, config, refused, "config_refused", MO_STR,
	      "what it breaks together with the recipe; null: nothing", .omit = true),
	MO_DP(job, saves, by_config, "saves_to", MO_STR,
	      "where the engine saves by its own configuration, without a checkpoint.dir",
	      .omit = true),
	MO_DP_VEC(job, run, prepared, "prepared", &prepared_desc,
		  "how long engine.prepare took on nodes of the attempt, slowest first",
		  .omit = true),
	MO_D(job, prepare_us, MO_INT,
	     "engine.prepare of all attempts, GPU-microseconds; MO_NONE: none", .omit = true),
	MO_D(job, created_at, MO_INT, "when it was submitted, us"),
	MO_D(job, started_at, MO_INT, "when its first attempt got GPUs, us; MO_NONE: not yet"),
	MO_D(job, ended_at, MO_INT, "when it came to its last state, us; MO_NONE: not yet"),
	MO_D(job, state_since, MO_INT, "when its state last changed, us"),
	MO_D(job, queued_since, MO_INT, "when it last came into the queue, us"),
	MO_D(job, not_before, MO_INT, "earliest time of the next attempt, us"),
	MO_D(job, over_us, MO_INT, "how long it was over before it was restarted, us",
	     .omit = true),
	MO_DP_VEC(job, run, places, "places", &place_desc,
		  "nodes of the current attempt with their ranks; empty while queued"),
	MO_DP(job, run, port, "port", MO_INT,
	      "first of the four ports of the attempt; MO_NONE: no attempt yet"),
	MO_D_VEC(job, steps, &step_desc, "of all attempts, until their agents forgot them"),
	MO_DP_VEC(job, run, ranks, "ranks", &rank_desc, "of the current or last attempt"),
	MO_DP(job, scan, attempt, "scan_attempt", MO_INT,
	      "attempt for which checkpoint.dir was last scanned"),
	MO_DP(job, scan, error, "scan_error", MO_STR, "why that failed; null: it did not"),
	MO_DP(job, run, resume, "resume", MO_INT,
	      "iteration that the attempt resumed from; -1: afresh"),
	MO_DP(job, run, placed_at, "placed_at", MO_TIME,
	      "when the attempt was given its places; null: by a version before"),
	MO_DP(job, run, start_us, "start_us", MO_INT,
	      "microseconds from then to its first iteration; MO_NONE: it did not get there",
	      .omit = true),
	MO_D_VEC(job, checkpoints, &checkpoint_desc,
		 "that are known, in ascending order of iterations"),
	MO_DP(job, progress, iteration, "iteration", MO_INT,
	      "newest of this attempt; MO_NONE: none"),
	MO_DP(job, progress, watermark, "watermark", MO_INT,
	      "highest iteration ever: what is done below it again is lost work"),
	MO_DP(job, progress, at, "progress_at", MO_INT,
	      "when the newest iteration was recorded, or the attempt began, us"),
	MO_DP_ENUM(job, progress, phase, "phase", phase_names, "what the ranks are doing"),
	MO_DP_VEC(job, progress, samples, "samples", &sample_desc,
		  "measured values of iterations, oldest first"),
	JOB_SHOWN_ROWS(job, progress.shown),
	MO_DP(job, failure, decided, "failed", MO_BOOL,
	      "what ended the current attempt is decided"),
	MO_DP(job, failure, at, "failed_at", MO_INT, "when that was decided, us"),
	MO_DP(job, failure, rank, "first_rank", MO_INT,
	      "index of the rank that failed first; below 0: no rank"),
	MO_DP(job, failure, node, "fail_node", MO_STR,
	      "name of the node that is to blame; null: none"),
	MO_DP(job, failure, class, "fail_class", MO_STR, "kind of failure"),
	MO_DP(job, failure, cause, "fail_cause", MO_STR, "what happened, for a person"),
	MO_DP_LIST(job, failure, evidence, "fail_evidence", MO_STRS, "what proves it, a line each"),
	MO_DP(job, failure, exit_mono_ns, "first_exit_mono_ns", MO_INT,
	      "when the first dead rank ended, ns of CLOCK_BOOTTIME of its node"),
	MO_DP(job, failure, exit0_at, "first_exit0_at", MO_INT,
	      "when the first rank ended with code 0, us; MO_NONE: none did"),
	MO_DP(job, streak, same, "same_failures", MO_INT,
	      "in a row, of one signature, without a new checkpoint between"),
	MO_DP(job, streak, signature, "last_signature", MO_STR,
	      "kind and cause of the last failure"),
	MO_DP(job, streak, checkpoint, "last_signature_checkpoint", MO_INT,
	      "iteration of the newest complete one at the last failure"),
	MO_DP(job, failure, waiting_node, "waiting_node", MO_BOOL,
	      "it recovers because a node is down, and nothing was killed"),
	MO_D_VEC(job, incidents, &incident_desc, "failures and what followed, oldest first"),
	MO_D_SUB(job, fabric, MO_OPT, &fabric_check_desc,
		 "what the newest check of the fabric over its nodes found; null: none was told",
		 .omit = true),
	MO_D_VEC(job, skips, &skip_desc, "data that its attempts leave out, oldest first",
		 .omit = true),
	MO_D_LIST(job, ledger, MO_INTS,
		  "GPU-microseconds of each category, which add up to the total"),
	MO_D(job, ledger_at, MO_INT, "until when they are charged, us"),
	MO_D(job, spare_us, MO_INT,
	     "GPU-microseconds of nodes that were its spares, beside the ledger", .omit = true),
	MO_D_VEC(job, ledger_marks, &ledger_mark_desc,
		 "what the ledger was at moments, oldest first, the nearer the denser",
		 .omit = true),
	MO_D(job, after_failure, MO_BOOL, "the next attempt counts as a restart"),
	MO_DP(job, scan, at, "scan_at", MO_INT,
	      "when checkpoint.dir was last scanned, us; MO_NONE: that is due again"),
	MO_DP(job, scan, writable, "scan_writable", MO_BOOL, "ranks could write there"),
	MO_DP(job, saves, path_refused, "path_refused", MO_BOOL,
	      "a checkpoint outside checkpoint.dir was announced, and reported once"),
	MO_DP(job, saves, elsewhere, "elsewhere", MO_STR,
	      "where the engine saved that is not checkpoint.dir; null: nowhere", .omit = true),
	MO_DP(job, saves, began, "began_elsewhere", MO_STR,
	      "where it began to save that is not checkpoint.dir", .omit = true),
	MO_DP(job, saves, began_at, "began_at", MO_INT, "iteration of that save", .omit = true),
	MO_DP(job, saves, doubt, "doubt", MO_STR,
	      "where a save may have gone, which a node is asked; null: nowhere", .omit = true),
	MO_DP(job, saves, doubt_at, "doubt_at", MO_INT, "iteration of that save", .omit = true),
	MO_DP(job, saves, refused, "refused", MO_STR,
	      "where the last save went that is no checkpoint; null: there was none", .omit = true),
	MO_DP(job, saves, refused_at, "refused_at", MO_INT, "iteration of that save", .omit = true),
	MO_DP(job, scan, at_end, "end_scan", MO_BOOL,
	      "completed: its last checkpoints are to be verified"),
	MO_DP(job, saves, every, "every", MO_INT,
	      "iterations between checkpoints, chosen by moed; 0: the recipe's"),
	MO_DP(job, saves, n, "n_saves", MO_INT, "how many saves the ledger has the time of"),
	MO_DP(job, saves, space_told, "space_told", MO_INT,
	      "how scarce the room for its checkpoints is: 2 low, 3 full, as was told; MO_NONE: "
	      "nothing was",
	      .omit = true),
	MO_DP(job, saves, space_at, "space_at", MO_INT,
	      "when a node last looked how much is free there, us; MO_NONE: never", .omit = true),
	MO_DP(job, progress, left_out, "left_out", MO_INT,
	      "iterations without a sample as they came too fast; MO_NONE: none"),
	MO_DP(job, progress, spike, "spike", MO_INT,
	      "iteration of the newest loss that is no number or far too high; MO_NONE: none"),
	MO_DP(job, progress, phase_of, "phase_of", MO_INT,
	      "iteration that the save under way is of; MO_NONE: no save, or not known",
	      .omit = true),
	MO_DP(job, progress, phase_said, "phase_said", MO_INT,
	      "when the save or evaluation under way was said, by the clock of its node, us; "
	      "MO_NONE: not known",
	      .omit = true),
	MO_DP(job, progress, longest_start_us, "longest_start_us", MO_INT,
	      "microseconds from its places to its first iteration, of the attempt before this one "
	      "that took longest; MO_NONE: none got there",
	      .omit = true),
	MO_DP_SUB(job, progress, numbers, "numbers", MO_OPT, &numbers_desc,
		  "what the losses say of the model; null: none was said yet", .omit = true),
	MO_DP_SUB(job, progress, pace, "pace", MO_OPT, &pace_desc,
		  "how long its iterations take; null: none was timed yet", .omit = true),
	MO_DP_SUB(job, progress, data_order, "data_order", MO_OPT, &data_order_desc,
		  "whether the newest resume went on with its data; null: none was heard of yet",
		  .omit = true),
	MO_DP(job, verify, iteration, "verify", MO_INT,
	      "iteration of the checkpoint that is being verified; MO_NONE: none"),
	MO_DP(job, verify, serial, "verify_serial", MO_INT, "how many verifications were begun"),
	MO_DP(job, verify, parts, "verify_parts", MO_INT, "how many parts it is done in"),
	MO_DP(job, verify, done, "verify_done", MO_INT, "which of the parts are over, a bit each"),
	MO_DP(job, streak, ports_busy, "port_tries", MO_INT,
	      "attempts in a row that found their ports busy"),
	MO_DP(job, streak, cycles, "cycles", MO_INT,
	      "failures in a row, of any signature, without a new checkpoint between"),
	MO_DP(job, streak, since, "streak_since", MO_INT,
	      "a person restarted it, us: failures before do not count", .omit = true),
	MO_DP(job, counts, started, "n_started", MO_INT, "steps of the attempt that said they run"),
	MO_DP(job, counts, dead, "n_dead", MO_INT,
	      "steps of the attempt whose ranks are proved dead"),
	MO_DP(job, counts, trouble, "n_trouble", MO_INT,
	      "steps refused, lost, dead with exits untold, or with a rank that failed"),
	MO_DP(job, counts, exited, "n_exited", MO_INT, "ranks of the attempt that exited"),
	MO_DP(job, counts, silent, "n_silent", MO_INT,
	      "steps that are not dead, on a node that is down"),
	MO_DP(job, counts, drained, "n_drained", MO_INT, "steps on a node with a drain"),
	MO_DP(job, counts, forgotten, "n_forgotten", MO_INT,
	      "steps of all attempts that are still to be swept out"),
	MO_DP(job, waterfall, stage, "waterfall_stage", MO_INT,
	      "1 place, 2 launch, 3 init, 4 load, 5 recompute; others: nothing is measured"),
	MO_DP(job, waterfall, at, "waterfall_at", MO_INT, "when that stage began, us"),
	MO_DP(job, waterfall, lost_mark, "lost_mark", MO_INT,
	      "iteration that the failed attempt had reached: recomputing ends there"),
	MO_DP(job, failure, detect_us, "detect_us", MO_INT,
	      "age of the first death when it was reported, us"),
	MO_DP(job, failure, unfinished_us, "unfinished_us", MO_INT,
	      "from the last iteration, or the last change of the phase, to that death, us",
	      .omit = true),
	MO_DP(job, waterfall, gone_at, "gone_at", MO_INT,
	      "when all steps of the last attempt were proved gone, us"),
	MO_D(job, unheard, MO_BOOL,
	     "a step ended without telling everything: the job may be beyond its watermark"),
	MO_DP(job, saves, dir, "checkpoint_dir", MO_STR,
	      "that of the recipe in plain form, to compare with other jobs'"),
	MO_DP(job, saves, real, "checkpoint_real", MO_STR,
	      "the same with links resolved; null: it has none, or nobody said", .omit = true),
	MO_DP_SUB(job, progress, measured, "measured", MO_OPT, &measured_desc,
		  "what it does, against its promise; null: nothing yet", .omit = true),
	MO_DP_LIST(job, checks, nodes, "check_nodes", MO_STRS,
		   "names of those whose checks after the failure are awaited", .omit = true,
		   .max = UINT32_MAX),
	MO_DP_LIST(job, checks, done, "check_done", MO_STRS, "names of those that answered",
		   .omit = true, .max = UINT32_MAX),
	MO_DP(job, checks, attempt, "check_attempt", MO_INT, "number of the attempt that failed",
	      .omit = true),
	MO_DP(job, checks, thorough, "check_thorough", MO_BOOL,
	      "it is asked whether their GPUs compute right", .omit = true),
	MO_DP(job, checks, doubted, "check_doubted", MO_STR,
	      "of this node only; unset: of all of them", .omit = true),
	MO_DP(job, checks, until, "check_until", MO_INT, "when the wait for them ends, us",
	      .omit = true),
	MO_D(job, attempt_floor, MO_INT,
	     "numbers up to it may have been used since the backup; MO_NONE: none", .omit = true),
	MO_D(job, events_gone, MO_INT, "how many of its events are no longer kept; MO_NONE: none",
	     .omit = true),
	MO_D(job, let_go, MO_INT, "bytes of its texts that are no longer kept; MO_NONE: none",
	     .omit = true),
	MO_DP_VEC(job, scan, unread, "unread", &unread_state_desc,
		  "entries found by the last scan that nobody could read", .omit = true),
	MO_DP(job, scan, unread_more, "unread_more", MO_INT, "how many more there are",
	      .omit = true),
	MO_DP_VEC(job, scan, passed_over, "passed_over", &unread_state_desc,
		  "those over which an attempt was ordered to start afresh", .omit = true),
	MO_DP(job, image, digest, "image_digest", MO_STR,
	      "the image that all its attempts have (engine.container)", .omit = true),
	MO_DP(job, image, node, "image_node", MO_STR, "node that said so", .omit = true),
	MO_DP(job, image, at, "image_at", MO_TIME, "when", .omit = true),
	JOB_HANG_ROWS,
	JOB_STRAGGLER_ROWS,
	MO_DP(job, image, waits, "image_waits", MO_BOOL,
	      "places are kept for it until they have the image", .omit = true),
};
const struct mo_desc job_desc = MO_DESC(job, job_fields);

int64_t job_next_attempt(const struct job *j)
{
	return MO_MAX(j->attempt, j->attempt_floor) + 1;
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

static int64_t over_us(const struct job *j)
{
	return j->over_us == MO_NONE ? 0 : j->over_us;
}

int64_t job_age(const struct job *j, int64_t end)
{
	return end - j->created_at - over_us(j);
}

int64_t job_time_up(const struct job *j)
{
	int64_t limit = j->spec.recipe.time_limit_us;

	return limit == MO_NONE || limit <= 0 || j->started_at == MO_NONE
		       ? INT64_MAX
		       : j->started_at + limit + over_us(j);
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

		if (!c->tainted &&
		    (c->state == CKPT_COMPLETE || c->state == CKPT_VERIFIED ||
		     c->state == CKPT_PINNED) &&
		    c->iteration > newest)
			newest = c->iteration;
	}
	return newest;
}
