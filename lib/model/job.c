/* Descriptions and names of what moed keeps and the REST interface shows. Keys and order of
 * rank_view, checkpoint, event and incident are the documented ones. */
#include "lib/model/job.h"

#include "lib/model/limits.h"

const char *const job_state_names[_JOB_STATE_N] = {
	"queued", "starting",  "running", "recovering", "stopping",
	"paused", "completed", "failed",  "cancelled",
};
const char *const rank_doing_names[_RANK_DOING_N] = {
	"importing",        "compiling",  "loading",  "stepping", "saving",  "evaluating",
	"collective-stuck", "host-stuck", "gpu-hung", "silent",   "unknown",
};
const char *const rank_state_names[_RANK_STATE_N] = { "waiting", "running", "exited", "lost" };
const char *const node_state_names[_NODE_STATE_N] = { "up", "suspect", "down", "draining",
						      "drained" };
const char *const ledger_category_names[] = { "productive", "queue",     "launch", "init",
					      "load",       "recompute", "save",   "hang",
					      "detect",     "drain",     "idle",   "image" };
const char *const checkpoint_state_names[_CKPT_STATE_N] = { "saving",  "complete",   "verified",
							    "torn",    "superseded", "pinned",
							    "deleted", "suspect",    "tainted" };
const char *const job_prefix[1] = { "j" };

static const struct mo_field rank_coords_fields[] = {
	MO_D(rank_coords, tp, MO_INT, "place in its tensor parallel group"),
	MO_D(rank_coords, pp, MO_INT, "pipeline stage"),
	MO_D(rank_coords, ep, MO_INT, "place in its expert parallel group"),
	MO_D(rank_coords, cp, MO_INT, "place in its context parallel group"),
	MO_D(rank_coords, dp, MO_INT, "place in its data parallel group"),
};
const struct mo_desc rank_coords_desc = MO_DESC(rank_coords, rank_coords_fields);

static const struct mo_field rank_exit_fields[] = {
	MO_D(rank_exit, code, MO_INT, "exit status; null: ended by a signal"),
	MO_D(rank_exit, signal, MO_INT, "signal that ended it; null: it exited"),
	MO_D(rank_exit, cause, MO_STR, "what that means"),
};
const struct mo_desc rank_exit_desc = MO_DESC(rank_exit, rank_exit_fields);

/* The documented Rank. */
#define RANK_VIEW_FIELDS \
	MO_D(rank, rank, MO_INT, "number of the rank"), \
		MO_D(rank, node, MO_STR, "node that it runs on"), \
		MO_D(rank, local_rank, MO_INT, "number on its node"), \
		MO_D(rank, pid, MO_INT, "process id on its node"), \
		MO_D_ENUM(rank, state, rank_state_names, "state of the rank"), \
		MO_D(rank, cpus, MO_STR, "CPUs that it is bound to, as a list such as 0-7,64-71"), \
		MO_D(rank, numa_node, MO_INT, "NUMA node that it is bound to"), \
		MO_D(rank, gpu, MO_INT, "slot of its GPU"), \
		MO_D(rank, nic, MO_STR, "RDMA device paired with its GPU"), \
		MO_D(rank, bind_verified, MO_TRI, "the binding was read back and is as wanted"), \
		MO_D(rank, bind_note, MO_STR, "what is not as wanted"), \
		MO_D(rank, iteration, MO_INT, "newest iteration that it reported"), \
		MO_D(rank, step_ms, MO_REAL, "milliseconds of that iteration"), \
		MO_D_SUB(rank, coords, MO_OPT, &rank_coords_desc, "place in the parallel groups"), \
		MO_D_SUB(rank, exit, MO_OPT, &rank_exit_desc, "how it ended; null: it has not"), \
		MO_D(rank, gpu_note, MO_STR, \
		     "what a check says of its GPU while that is missing, unreadable or broken", \
		     .omit = true), \
		MO_D_ENUM(rank, doing, rank_doing_names, \
			  "what it does while it runs, by the words of its engine; by what moves " \
			  "while a hang is suspected; unknown: nobody can tell", \
			  .omit = true), \
		MO_D(rank, own_times, MO_REAL, \
		     "what a step takes it by itself, of the best that it kept up in this " \
		     "attempt, so many times; unset: it tells of too few", \
		     .omit = true)

static const struct mo_field rank_view_fields[] = { RANK_VIEW_FIELDS };
const struct mo_desc rank_view_desc = MO_DESC(rank, rank_view_fields);

static const struct mo_field rank_fields[] = {
	RANK_VIEW_FIELDS,
	MO_D(rank, exit_mono_ns, MO_INT,
	     "when it ended, by CLOCK_BOOTTIME of its node in nanoseconds; unset: not known",
	     .omit = true),
	MO_D(rank, start_time, MO_INT,
	     "when its process started, clock ticks since boot (/proc/PID/stat)", .omit = true),
	MO_D_LIST(rank, tail, MO_STRS, "last lines that it printed", .omit = true,
		  .max = MO_TAIL_LINES),
};
const struct mo_desc rank_desc = MO_DESC(rank, rank_fields);

#define CHECKPOINT_FIELDS \
	MO_D(checkpoint, iteration, MO_INT, "iteration that it was saved at"), \
		MO_D(checkpoint, path, MO_STR, "directory or file on the training nodes"), \
		MO_D_ENUM(checkpoint, state, checkpoint_state_names, "what became of it"), \
		MO_D(checkpoint, level, MO_STR, \
		     "how closely it was checked: marker, sizes or crc"), \
		MO_D(checkpoint, bytes, MO_INT, "size in bytes"), \
		MO_D(checkpoint, saved_at, MO_TIME, "when it was saved"), \
		MO_D(checkpoint, verified_at, MO_TIME, "when it was checked"), \
		MO_D(checkpoint, attempt, MO_INT, \
		     "attempt that saved it; 0: one behind the backup that was restored"), \
		MO_D(checkpoint, reason, MO_STR, "why it is in its state"), \
		MO_D(checkpoint, fixed, MO_STR, \
		     "parallel sizes that a resume needs, such as tp 1, pp 2, where its format " \
		     "does not reshard", \
		     .omit = true, .max = 128), \
		MO_D(checkpoint, held, MO_STR, \
		     "why the engine cannot load it as it lies there, though it is whole", \
		     .omit = true), \
		MO_D(checkpoint, failed_loads, MO_INT, \
		     "attempts in a row that loaded it and died before a new iteration", \
		     .omit = true),
static const struct mo_field checkpoint_view_fields[] = { CHECKPOINT_FIELDS };
static const struct mo_field checkpoint_fields[] = {
	CHECKPOINT_FIELDS MO_D(checkpoint, manifest, MO_STR,
			       "digest of its files as they were verified; unset: not verified",
			       .omit = true, .max = 64),
	MO_D(checkpoint, tainted, MO_STR, "what was wrong with the loss when it was saved",
	     .omit = true),
	MO_D(checkpoint, announced, MO_BOOL, "the engine said that this save is complete",
	     .omit = true),
	MO_D(checkpoint, compared, MO_BOOL,
	     "its content was read since an attempt died that loaded it", .omit = true),
	MO_D(checkpoint, seen_at, MO_INT,
	     "when its files were written, us, by the clock of their file system; unset: not seen",
	     .omit = true),
};
const struct mo_desc checkpoint_view_desc = { .name = "checkpoint",
					      .size = sizeof(struct checkpoint),
					      .fields = checkpoint_view_fields,
					      .n_fields = ELEMENTSOF(checkpoint_view_fields) };
const struct mo_desc checkpoint_desc = MO_DESC(checkpoint, checkpoint_fields);

static const struct mo_field event_fields[] = {
	MO_D(event, seq, MO_INT, "its number; later events have higher ones"),
	MO_D(event, time, MO_TIME, "when it happened"),
	MO_D(event, type, MO_STR, "type of the event"),
	MO_D_ID(event, job, job_prefix, "id of the job that it is about"),
	MO_D(event, node, MO_STR, "node that it is about"),
	MO_D(event, rank, MO_INT, "rank that it is about"),
	MO_D(event, attempt, MO_INT, "attempt that it is about"),
	MO_D(event, message, MO_STR, "what happened, in words"),
	MO_D(event, data, MO_RAWJSON, "further members by type"),
};
const struct mo_desc event_desc = MO_DESC(event, event_fields);

static const struct mo_field waterfall_fields[] = {
	MO_D(waterfall, unfinished, MO_INT,
	     "from the last iteration until the death of the first rank: an iteration that nobody "
	     "has; null of an earlier version",
	     .omit = true),
	MO_D(waterfall, detect, MO_INT,
	     "from the death of the first rank until the controller knew"),
	MO_D(waterfall, stop, MO_INT, "until every rank is proved gone"),
	MO_D(waterfall, place, MO_INT, "until the next attempt has nodes, but for image"),
	MO_D(waterfall, image, MO_INT, "while nodes were kept for it until they had its image",
	     .omit = true),
	MO_D(waterfall, launch, MO_INT, "until its processes run"),
	MO_D(waterfall, init, MO_INT, "until it loads its checkpoint"),
	MO_D(waterfall, load, MO_INT, "until its first iteration begins"),
	MO_D(waterfall, recompute, MO_INT, "until it is where it was"),
};
const struct mo_desc waterfall_desc = MO_DESC(waterfall, waterfall_fields);

static const struct mo_field incident_fields[] = {
	MO_D(incident, time, MO_TIME, "when"),
	MO_D(incident, attempt, MO_INT, "attempt that failed"),
	MO_D(incident, class, MO_STR, "class of the failure"),
	MO_D(incident, first_rank, MO_INT, "rank that failed first"),
	MO_D(incident, node, MO_STR, "node where it began"),
	MO_D(incident, cause, MO_STR, "what happened"),
	MO_D_LIST(incident, evidence, MO_STRS, "what that rests on"),
	MO_D(incident, action, MO_STR, "what the controller did about it"),
	MO_D_LIST(incident, later, MO_STRS, "what its nodes told after that", .omit = true),
	MO_D(incident, rule, MO_STR, "signature whose lines decided the class", .omit = true),
	MO_D(incident, why, MO_STR, "what such a line means", .omit = true),
	MO_D(incident, gpu, MO_INT, "GPU of that rank on its node", .omit = true),
	MO_D(incident, device, MO_STR, "PCI address of that GPU", .omit = true),
	MO_D(incident, iteration, MO_INT, "highest iteration of the job by then", .omit = true),
	MO_D(incident, elsewhere, MO_BOOL, "the next attempts avoid the node if they can",
	     .omit = true),
	MO_D(incident, lost_iterations, MO_INT, "iterations that were undone"),
	MO_DN(incident, waterfall, "waterfall_ms", MO_STRUCT,
	      "how long the restart took, by part, milliseconds; of the part that is open what it "
	      "took so far, null: it did not begin, or how long it took is not known",
	      .sub = &waterfall_desc),
	MO_D(incident, open, MO_STR, "part of the waterfall that still lasts; null: none does",
	     .omit = true),
};
const struct mo_desc incident_desc = MO_DESC(incident, incident_fields);

struct rank_coords rank_coords_of(int64_t rank, int64_t tp, int64_t cp, int64_t ep, int64_t dp,
				  int64_t pp)
{
	int64_t context = rank / tp % cp, data = rank / (tp * cp) % dp;

	return (struct rank_coords){
		.tp = rank % tp,
		.cp = context,
		.dp = data,
		.ep = (data * cp + context) % ep,
		.pp = rank / (tp * cp * dp) % pp,
	};
}
