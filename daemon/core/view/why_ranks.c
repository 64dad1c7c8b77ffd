/* See why_ranks.h. */
#include "daemon/core/view/why_ranks.h"

#include "daemon/core/rules/hang_recorder.h"
#include "daemon/core/rules/rank_doing.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/view/why_reason.h"

/* While it is only suspected: what is so now, and what flight recorders said when they were
 * asked. */
static struct why_reason *why_suspected(const struct state *s, const struct job *j, int64_t now,
					struct why_view *w)
{
	_cleanup_(mo_freep) char *ranks = ranks_doing_text(s, j, now);
	char *const *evidence = j->hang.evidence;
	size_t n = j->hang.n_evidence;
	const char *seen = job_hang_seen(s, j, now, &evidence, &n),
		   *text = seen ? seen : j->hang.text;
	struct why_reason *r = why_reason(w, "hang-suspected", "%s", text ? text : "nothing moves");

	for (size_t i = 0; i < n; i++)
		why_evidence(r, "%s", evidence[i]);
	for (size_t i = 0; seen && i < j->hang.n_evidence; i++)
		if (mo_starts_with(j->hang.evidence[i], RECORDERS_SAY))
			why_evidence(r, "%s", j->hang.evidence[i]);
	if (ranks)
		why_evidence(r, "ranks: %s", ranks);
	return r;
}

static struct why_reason *why_confirmed(const struct job *j, struct why_view *w)
{
	struct why_reason *r = why_reason(w, "hang-confirmed", "%s",
					  j->hang.text ? j->hang.text : "nothing moves");

	for (size_t i = 0; i < j->hang.n_evidence; i++)
		why_evidence(r, "%s", j->hang.evidence[i]);
	return r;
}

/* What was judged of it, and how often that was right. */
void why_hang(const struct state *s, const struct job *j, int64_t now, struct why_view *w)
{
	struct why_reason *r;

	if (j->hang.stage < 0)
		return;
	r = j->hang.stage == HANG_SUSPECTED ? why_suspected(s, j, now, w) : why_confirmed(j, w);
	if (j->hang.n_wrong > 0)
		why_evidence(r, "%lld of its %lld verdicts of a hang were wrong so far",
			     (long long)j->hang.n_wrong, (long long)j->hang.n_confirmed);
}

/* How far it is, and which ranks do something else than to iterate. */
void why_progress(const struct state *s, const struct job *j, int64_t now, struct why_view *w)
{
	_cleanup_(mo_freep) char *ranks = j->hang.stage < 0 ? ranks_doing_text(s, j, now) : NULL;
	struct why_reason *r;

	if (j->progress.iteration == MO_NONE)
		return;
	r = why_reason(w, "progress", "iteration %lld, %lld ms ago",
		       (long long)j->progress.iteration,
		       (long long)((now - job_progress_at(s, j)) / 1000));
	if (ranks)
		why_evidence(r, "ranks: %s", ranks);
}
