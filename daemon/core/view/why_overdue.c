/* See why_overdue.h. */
#include "daemon/core/view/why_overdue.h"

#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/view/why_reason.h"

/* so long may what has no time of its own take: first iterations, saves, evaluations */
#define LONG_US (600 * 1000000LL)
#define NAMED_MAX 8 /* ranks, findings */

/* A rank's parent is its supervisor, whose pid nobody else tells. */
static int64_t pid_on(const struct job *j, const struct step *st)
{
	for (int64_t r = st->first_rank;
	     r < st->first_rank + st->n_ranks && (uint64_t)r < j->run.n_ranks; r++)
		if (!j->run.ranks[r].exit && j->run.ranks[r].pid > 0)
			return j->run.ranks[r].pid;
	return MO_NONE;
}

/* why_silent() has its reason. */
static char *next_of_supervisor(const struct job *j)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		int64_t pid = pid_on(j, st);

		if (st->attempt != j->attempt || !st->hung || st->missing || step_dead(st))
			continue;
		_cleanup_(mo_freep) char *which =
			pid == MO_NONE
				? mo_printf("the process that holds the lock in the step's "
					    "directory")
				: mo_printf("process 'ps -o ppid= -p %lld' there", (long long)pid);

		return mo_printf("its supervisor on %s does not answer (moe-stepd, %s): where 'ps' "
				 "shows it stopped (T), 'kill -CONT' lets it go on; 'kill -KILL' "
				 "of "
				 "it ends its ranks, and the next attempt starts by itself",
				 st->node, which);
	}
	return NULL;
}

static char *next_of_ended_rank(const struct job *j, struct why_view *w)
{
	const struct rank *first = NULL;
	size_t standing = 0;

	for (size_t i = 0; i < j->run.n_ranks; i++) {
		const struct rank *k = &j->run.ranks[i];

		standing += !k->exit;
		if (!first && k->exit && k->exit->code == 0)
			first = k;
	}
	if (!first || standing == 0)
		return NULL;
	struct why_reason *r =
		why_reason(w, "rank-ended",
			   "rank %lld on %s ended with code 0, and "
			   "%zu of %zu ranks run on",
			   (long long)first->rank, first->node, standing, j->run.n_ranks);
	for (size_t i = 0, n = 0; i < j->run.n_ranks && n < NAMED_MAX; i++)
		if (!j->run.ranks[i].exit) {
			why_evidence(r, "rank %zu on %s runs", i, j->run.ranks[i].node);
			n++;
		}
	return mo_printf("the others have a time to end too, 300 s by default; then the attempt "
			 "has failed and the next one starts by itself: 'moectl logs j-%lld --rank "
			 "%lld' says why rank %lld ended",
			 (long long)j->id, (long long)first->rank, (long long)first->rank);
}

static void add_findings(const struct state *s, const struct job *j, struct why_reason *r)
{
	size_t n = 0;

	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct node *node = node_find(s, j->run.places[i].node);

		for (size_t k = 0; node && node->health && k < node->health->n_results; k++) {
			const struct check_result *c = &node->health->results[k];

			if (c->state < CHECK_WARN || finding_skipped(c) || n++ >= NAMED_MAX)
				continue;
			_cleanup_(mo_freep) char *name = finding_name(c);

			why_evidence(r, "node %s: %s: %s", node->name, name,
				     c->text ? c->text : "");
		}
	}
}

static char *next_of_iteration(const struct state *s, const struct job *j, int64_t now,
			       struct why_view *w)
{
	bool none = j->progress.iteration == MO_NONE,
	     slow = none || j->progress.phase == PHASE_SAVE || j->progress.phase == PHASE_EVAL;
	int64_t limit = slow ? LONG_US : progress_limit_us(j, 1),
		since = none ? MO_MAX(j->state_since, j->progress.at) : job_progress_at(s, j);

	if (now - since <= limit || (!none && j->spec.recipe.steps != MO_NONE &&
				     j->progress.iteration >= j->spec.recipe.steps))
		return NULL;
	struct why_reason *r =
		why_reason(w, "iteration-overdue", "iteration %lld is overdue by %lld s",
			   none ? MO_MAX(j->run.resume, 0) + 1LL : j->progress.iteration + 1LL,
			   (long long)((now - since - limit) / 1000000));

	why_evidence(r, "nothing came for %lld s; %lld s are allowed: %s",
		     (long long)((now - since) / 1000000), (long long)(limit / 1000000),
		     slow ? "for what has no time of its own"
			  : "3 times the recent step, 10 s at least");
	add_findings(s, j, r);
	return mo_printf("see what its ranks wait for: 'moectl ranks j-%lld' shows who is behind, "
			 "'moectl exec j-%lld RANK -- py-spy dump --pid PID' where it stands "
			 "('ps': "
			 "T is stopped, 'kill -CONT PID' lets it go on); 'moectl restart j-%lld' "
			 "goes back to its last checkpoint",
			 (long long)j->id, (long long)j->id, (long long)j->id);
}

char *why_overdue(const struct state *s, const struct job *j, int64_t now, struct why_view *w)
{
	char *supervisor = next_of_supervisor(j), *ended = next_of_ended_rank(j, w),
	     *iteration = next_of_iteration(s, j, now, w);
	char *next = supervisor ? supervisor : ended ? ended : iteration;

	if (ended != next)
		free(ended);
	if (iteration != next)
		free(iteration);
	return next;
}
