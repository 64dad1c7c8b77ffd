/* What nodes found in checkpoint directories: a scan of all of it, the files of one checkpoint read
 * back, one that was deleted. */
#include "daemon/core/rules/scans.h"

#include "daemon/core/rules/commands.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/numbers.h"
#include "daemon/core/rules/schedule.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/space.h"
#include "lib/base/buf.h"
#include "lib/model/limits.h"

/* A checkpoint as it was known. */
struct known {
	int64_t iteration;
	int state;
};

/* One of a job's checkpoints, which a scan left or made so. */
static void scan_event(struct turn *t, int64_t id, const struct checkpoint *c)
{
	bool torn = c->state == CKPT_TORN;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (checkpoint_tainted(c))
		numbers_tell_tainted(t, id, c);
	if (!torn && c->state != CKPT_VERIFIED)
		return;
	data_int(&b, "iteration", c->iteration);
	data_str(&b, "path", c->path);
	data_str(&b, "reason", c->reason);
	event_emit(t, torn ? EVENT_CHECKPOINT_TORN : EVENT_CHECKPOINT_VERIFIED, id, NULL, MO_NONE,
		   c->attempt, data_end(&b), "checkpoint %lld is %s%s%s", (long long)c->iteration,
		   torn ? "not usable" : "complete", c->reason ? ": " : "",
		   c->reason ? c->reason : "");
}

/* Both ascend: a node may answer a thousand times in one message. */
static void scan_events(struct turn *t, int64_t id, const struct known *before, size_t n_before)
{
	const struct job *j = job_find(&t->core->state, id);

	for (size_t i = 0, k = 0; i < j->n_checkpoints; i++) {
		const struct checkpoint *c = &j->checkpoints[i];

		while (k < n_before && before[k].iteration < c->iteration)
			k++;
		if (k == n_before || before[k].iteration != c->iteration ||
		    before[k].state != checkpoint_shown(c).state)
			scan_event(t, id, c);
	}
}

static void scan_record(struct turn *t, const struct scan_result *scan)
{
	struct record r;

	record_init(&r, REC_SCAN);
	r.job = scan->job;
	r.attempt = scan->attempt;
	r.scan = mo_desc_dup(&scan_result_desc, scan);
	turn_emit(t, &r);
}

/* Takes the result over; events tell what it changed. */
static void record_scan(struct turn *t, const struct job *j, const struct scan_result *scan)
{
	size_t n_before = j->n_checkpoints;
	_cleanup_(mo_freep) struct known *before = mo_alloc_array(n_before + 1, sizeof(*before));

	for (size_t i = 0; i < n_before; i++)
		before[i] = (struct known){ j->checkpoints[i].iteration,
					    checkpoint_shown(&j->checkpoints[i]).state };
	scan_record(t, scan);
	scan_events(t, scan->job, before, n_before);
}

/* All of the directory was scanned. */
static void scanned(struct turn *t, const struct job *j, const struct scan_result *scan)
{
	if (scan->id != job_next_attempt(j) || scan->n_items > MO_CHECKPOINTS_MAX)
		return;
	if (j->scan.at_end ||
	    (!job_state_final(j->state) && j->run.n_places == 0 && !scan_fresh(j, t->now)))
		record_scan(t, j, scan);
}

/* Once for each step down. */
static void space_event(struct turn *t, const struct job *j, int64_t told_before)
{
	struct space s = space_of(j);
	_cleanup_(mo_freep) char *text =
		j->saves.space_told > told_before ? space_text(j, &s) : NULL;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!text)
		return;
	data_int(&b, "free_bytes", s.free);
	data_int(&b, "bytes", s.size);
	data_int(&b, "fits", s.fits);
	data_int(&b, "due", s.due);
	event_emit(t, EVENT_CHECKPOINT_SPACE, j->id, NULL, MO_NONE, j->attempt, data_end(&b), "%s",
		   text);
}

void fleet_scanned(struct turn *t, const char *node, const struct scan_result *scan)
{
	const struct job *j = job_find(&t->core->state, scan->job);

	if (!j || !scan_asked(t->core, j, node, scan))
		return;
	int64_t told = j->saves.space_told;
	switch (scan->order) {
	case ORDER_VERIFY:
		/* one record for each part: what is left to do follows from the state */
		record_scan(t, j, scan);
		break;
	case ORDER_PRUNE:
		if (!scan->error)
			scan_record(t, scan);
		break;
	default: scanned(t, j, scan);
	}
	space_event(t, j, told);
}
