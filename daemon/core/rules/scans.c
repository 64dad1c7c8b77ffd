/* What nodes found in checkpoint directories: a scan of all of it, the files of one checkpoint read
 * back, one that was deleted. */
#include "daemon/core/rules/scans.h"

#include "daemon/core/rules/commands.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/schedule.h"
#include "daemon/core/rules/turn.h"
#include "lib/base/buf.h"
#include "lib/model/limits.h"

static void scan_events(struct turn *t, int64_t id, const struct checkpoint *before,
			size_t n_before)
{
	const struct job *j = job_find(&t->core->state, id);

	for (size_t i = 0; i < j->n_checkpoints; i++) {
		const struct checkpoint *c = &j->checkpoints[i];
		bool same = false, torn = c->state == CKPT_TORN;
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		for (size_t k = 0; k < n_before; k++)
			same |= before[k].iteration == c->iteration && before[k].state == c->state;
		if (same || (!torn && c->state != CKPT_VERIFIED))
			continue;
		data_int(&b, "iteration", c->iteration);
		data_str(&b, "path", c->path);
		data_str(&b, "reason", c->reason);
		event_emit(t, torn ? EVENT_CHECKPOINT_TORN : EVENT_CHECKPOINT_VERIFIED, id, NULL,
			   MO_NONE, c->attempt, data_end(&b), "checkpoint %lld is %s%s%s",
			   (long long)c->iteration, torn ? "not usable" : "complete",
			   c->reason ? ": " : "", c->reason ? c->reason : "");
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
	struct job before;

	mo_desc_init(&job_desc, &before);
	for (size_t i = 0; i < j->n_checkpoints; i++)
		mo_desc_copy(&checkpoint_desc, MO_ADD(&before, checkpoints, &checkpoint_desc),
			     &j->checkpoints[i]);
	scan_record(t, scan);
	scan_events(t, scan->job, before.checkpoints, before.n_checkpoints);
	mo_desc_done(&job_desc, &before);
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

void fleet_scanned(struct turn *t, const char *node, const struct scan_result *scan)
{
	const struct job *j = job_find(&t->core->state, scan->job);

	if (!j || !scan_asked(t->core, j, node, scan))
		return;
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
}
