/* Descriptions and names of what moed keeps and the REST interface shows. Keys and order of
 * rank_view, checkpoint, event and incident are the documented ones. */
#include "lib/model/job.h"

#include "lib/model/limits.h"

const char *const job_state_names[_JOB_STATE_N] = {
	"queued", "starting",  "running", "recovering", "stopping",
	"paused", "completed", "failed",  "cancelled",
};
const char *const rank_state_names[_RANK_STATE_N] = { "waiting", "running", "exited", "lost" };
const char *const node_state_names[_NODE_STATE_N] = { "up", "suspect", "down", "draining",
						      "drained" };
const char *const checkpoint_state_names[_CKPT_STATE_N] = { "saving", "complete",   "verified",
							    "torn",   "superseded", "pinned",
							    "deleted" };
const char *const job_prefix[1] = { "j" };

static const struct mo_field rank_coords_fields[] = {
	MO_F(rank_coords, tp, MO_INT), MO_F(rank_coords, pp, MO_INT), MO_F(rank_coords, ep, MO_INT),
	MO_F(rank_coords, cp, MO_INT), MO_F(rank_coords, dp, MO_INT),
};
const struct mo_desc rank_coords_desc = MO_DESC(rank_coords, rank_coords_fields);

static const struct mo_field rank_exit_fields[] = {
	MO_F(rank_exit, code, MO_INT),
	MO_F(rank_exit, signal, MO_INT),
	MO_F(rank_exit, cause, MO_STR),
};
const struct mo_desc rank_exit_desc = MO_DESC(rank_exit, rank_exit_fields);

/* The documented Rank. */
#define RANK_VIEW_FIELDS \
	MO_F(rank, rank, MO_INT), MO_F(rank, node, MO_STR), MO_F(rank, local_rank, MO_INT), \
		MO_F(rank, pid, MO_INT), MO_F_ENUM(rank, state, rank_state_names), \
		MO_F(rank, cpus, MO_STR), MO_F(rank, numa_node, MO_INT), MO_F(rank, gpu, MO_INT), \
		MO_F(rank, nic, MO_STR), MO_F(rank, bind_verified, MO_TRI), \
		MO_F(rank, bind_note, MO_STR), MO_F(rank, iteration, MO_INT), \
		MO_F(rank, step_ms, MO_REAL), MO_F_SUB(rank, coords, MO_OPT, &rank_coords_desc), \
		MO_F_SUB(rank, exit, MO_OPT, &rank_exit_desc), \
		MO_F(rank, gpu_note, MO_STR, .omit = true)

static const struct mo_field rank_view_fields[] = { RANK_VIEW_FIELDS };
const struct mo_desc rank_view_desc = MO_DESC(rank, rank_view_fields);

static const struct mo_field rank_fields[] = {
	RANK_VIEW_FIELDS,
	MO_F(rank, exit_mono_ns, MO_INT, .omit = true),
	MO_F(rank, start_time, MO_INT, .omit = true),
	MO_F_LIST(rank, tail, MO_STRS, .omit = true, .max = MO_TAIL_LINES),
};
const struct mo_desc rank_desc = MO_DESC(rank, rank_fields);

#define CHECKPOINT_FIELDS \
	MO_F(checkpoint, iteration, MO_INT), MO_F(checkpoint, path, MO_STR), \
		MO_F_ENUM(checkpoint, state, checkpoint_state_names), \
		MO_F(checkpoint, level, MO_STR), MO_F(checkpoint, bytes, MO_INT), \
		MO_F(checkpoint, saved_at, MO_TIME), MO_F(checkpoint, verified_at, MO_TIME), \
		MO_F(checkpoint, attempt, MO_INT), MO_F(checkpoint, reason, MO_STR), \
		MO_F(checkpoint, fixed, MO_STR, .omit = true, .max = 128), \
		MO_F(checkpoint, held, MO_STR, .omit = true),
static const struct mo_field checkpoint_view_fields[] = { CHECKPOINT_FIELDS };
static const struct mo_field checkpoint_fields[] = {
	CHECKPOINT_FIELDS MO_F(checkpoint, manifest, MO_STR, .omit = true, .max = 64),
};
const struct mo_desc checkpoint_view_desc = { .name = "checkpoint",
					      .size = sizeof(struct checkpoint),
					      .fields = checkpoint_view_fields,
					      .n_fields = ELEMENTSOF(checkpoint_view_fields) };
const struct mo_desc checkpoint_desc = MO_DESC(checkpoint, checkpoint_fields);

static const struct mo_field event_fields[] = {
	MO_F(event, seq, MO_INT),      MO_F(event, time, MO_TIME),
	MO_F(event, type, MO_STR),     MO_F_ID(event, job, job_prefix),
	MO_F(event, node, MO_STR),     MO_F(event, rank, MO_INT),
	MO_F(event, attempt, MO_INT),  MO_F(event, message, MO_STR),
	MO_F(event, data, MO_RAWJSON),
};
const struct mo_desc event_desc = MO_DESC(event, event_fields);

static const struct mo_field waterfall_fields[] = {
	MO_F(waterfall, detect, MO_INT),    MO_F(waterfall, stop, MO_INT),
	MO_F(waterfall, place, MO_INT),     MO_F(waterfall, launch, MO_INT),
	MO_F(waterfall, init, MO_INT),      MO_F(waterfall, load, MO_INT),
	MO_F(waterfall, recompute, MO_INT),
};
const struct mo_desc waterfall_desc = MO_DESC(waterfall, waterfall_fields);

static const struct mo_field incident_fields[] = {
	MO_F(incident, time, MO_TIME),
	MO_F(incident, attempt, MO_INT),
	MO_F(incident, class, MO_STR),
	MO_F(incident, first_rank, MO_INT),
	MO_F(incident, node, MO_STR),
	MO_F(incident, cause, MO_STR),
	MO_F_LIST(incident, evidence, MO_STRS),
	MO_F(incident, action, MO_STR),
	MO_F(incident, lost_iterations, MO_INT),
	MO_FN(incident, waterfall, "waterfall_ms", MO_STRUCT, .sub = &waterfall_desc),
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
