/* See slow.h. */
#include "daemon/core/view/slow.h"

#include "daemon/core/rules/straggler_activity.h"
#include "daemon/core/rules/straggler_leave.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/pace.h"
#include "daemon/core/view/why_reason.h"

static const struct mo_field pace_view_fields[] = {
	MO_D(pace_view, ms, MO_REAL, "milliseconds of an iteration, the median of the newest"),
	MO_D(pace_view, usual_ms, MO_REAL, "the best such median that it had"),
	MO_D(pace_view, lost_pct, MO_REAL, "percent of its time that it loses against that"),
	MO_D(pace_view, since, MO_INT, "iteration at which that began"),
	MO_D(pace_view, text, MO_STR, "the same in words"),
};
const struct mo_desc pace_view_desc = MO_DESC(pace_view, pace_view_fields);

static const struct mo_field straggler_view_fields[] = {
	MO_D(straggler_view, rank, MO_INT, "number of the rank"),
	MO_D(straggler_view, node, MO_STR, "name of its node"),
	MO_D_SUB(straggler_view, coords, MO_OPT, &rank_coords_desc, "its place in the mesh"),
	MO_D_ENUM(straggler_view, sign, straggler_sign_names,
		  "what shows it: its own time of a step, the clock of its GPU, or what it does: "
		  "it waits for a processor, its GPU is idle, its GPU has more to do; own: its own "
		  "time of a step against what it was before, as it has too few peers"),
	MO_D(straggler_view, times, MO_REAL,
	     "what its peers have, or it had before (own), this many times"),
	MO_D(straggler_view, lost_pct, MO_REAL, "percent of its time that the job loses by it"),
	MO_D(straggler_view, alone, MO_BOOL, "one source alone says so: nobody is moved for it"),
	MO_D(straggler_view, at, MO_TIME, "when it was found"),
	MO_D(straggler_view, text, MO_STR, "the same in words"),
};
const struct mo_desc straggler_view_desc = MO_DESC(straggler_view, straggler_view_fields);

struct pace_view *pace_view_of(const struct job *j)
{
	const struct pace *p = j->progress.pace;
	struct pace_view *v;

	if (!pace_slow(j) || job_state_final(j->state))
		return NULL;
	v = mo_desc_new(&pace_view_desc);
	v->ms = p->now_ms;
	v->usual_ms = p->best_ms;
	v->lost_pct = pace_lost_pct(j);
	v->since = p->since;
	v->text = pace_text(j);
	return v;
}

struct straggler_view *straggler_view_of(const struct job *j)
{
	const struct job_straggler *g = &j->straggler;
	struct straggler_view *v;

	if (g->rank == MO_NONE || (size_t)g->rank >= j->run.n_ranks)
		return NULL;
	v = mo_desc_new(&straggler_view_desc);
	v->rank = g->rank;
	v->node = mo_strdup(j->run.ranks[g->rank].node);
	if (j->run.ranks[g->rank].coords)
		v->coords = mo_desc_dup(&rank_coords_desc, j->run.ranks[g->rank].coords);
	v->sign = g->sign;
	v->alone = g->alone;
	v->times = g->times;
	v->lost_pct = g->lost_pct;
	v->at = g->at;
	v->text = mo_strdup(g->text);
	return v;
}

/* What recovery.straggler does about it. */
static void why_follows(const struct state *s, const struct job *j, int64_t now,
			struct why_reason *r)
{
	_cleanup_(mo_freep) char *stays = NULL;

	if (j->straggler.alone)
		why_evidence(r, "that is one source of it: nothing follows by itself");
	if (!straggler_may_leave(j))
		return;
	stays = straggler_stays(s, j, now);
	if (stays)
		why_evidence(r, "recovery.straggler: drain: the job stays: %s", stays);
	else
		why_evidence(r, "recovery.straggler: drain: the job moves to another node as soon "
				"as its next checkpoint is complete");
}

void why_slow(const struct state *s, const struct job *j, int64_t now, struct why_view *w)
{
	_cleanup_(mo_freep) char *slow = pace_slow(j) ? pace_text(j) : NULL;
	_cleanup_(mo_freep) char *hint = slow ? activity_hint_text(s, j, now) : NULL;
	const struct job_straggler *g = &j->straggler;
	struct why_reason *r;
	size_t known, processors, gpus;

	if (g->rank != MO_NONE) {
		r = why_reason(w, "straggler", "%s", g->text);
		for (size_t i = 0; i < g->n_evidence; i++)
			why_evidence(r, "%s", g->evidence[i]);
		why_follows(s, j, now, r);
		return;
	}
	if (!slow)
		return;
	r = why_reason(w, "slower", "the job is slower than it was; no rank stands out");
	why_evidence(r, "%s", slow);
	known = ranks_own_known(s, j);
	why_evidence(r, "of %zu ranks %zu tell what a step takes them", j->run.n_ranks, known);
	if (known > 1)
		why_evidence(r, "theirs are alike: they hold the waiting for others, or all are "
				"slower");
	ranks_acts_known(s, j, now, &processors, &gpus);
	why_evidence(r, "of %zu it is known what they do with processors, of %zu what with GPUs",
		     processors, gpus);
	if (hint)
		why_evidence(r, "%s", hint);
}
