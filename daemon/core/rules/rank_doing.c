/* See rank_doing.h. */
#include "daemon/core/rules/rank_doing.h"

#include "daemon/core/state/heard.h"
#include "lib/base/buf.h"

#define RANGES_SHOWN 4 /* of one state */

/* Of most engines one rank tells of iterations, and says for all what they do: the word of another
 * one, of its start say, is older than the first iteration. */
int rank_engine_doing(const struct state *s, const struct job *j, size_t rank)
{
	int phase = j->progress.phase, own = rank_phase_of(s, j, rank);
	int64_t iteration;
	double step_ms;

	rank_progress_of(s, j, rank, &iteration, &step_ms);
	if (own > PHASE_NONE && (iteration != MO_NONE || j->progress.iteration == MO_NONE))
		phase = own;
	if (iteration == MO_NONE)
		iteration = j->progress.iteration;
	switch (phase) {
	case PHASE_LOAD: return RANK_LOADING;
	case PHASE_SAVE: return RANK_SAVING;
	case PHASE_EVAL: return RANK_EVALUATING;
	case PHASE_TRAIN: return iteration == MO_NONE ? RANK_COMPILING : RANK_STEPPING;
	default: return iteration == MO_NONE ? RANK_IMPORTING : RANK_STEPPING;
	}
}

int rank_doing_of(const struct state *s, const struct job *j, size_t rank, int64_t now)
{
	const struct rank *k = &j->run.ranks[rank];
	const struct node *n = node_find(s, k->node);
	int judged = rank_judged_of(s, j, rank, now);

	if (k->state != RANK_RUNNING && k->state != RANK_LOST)
		return -1;
	if (!n || n->state == NODE_SUSPECT || n->state == NODE_DOWN)
		return RANK_SILENT;
	if (j->hang.stage >= 0)
		return judged >= 0 ? judged : RANK_UNKNOWN;
	/* an engine that never told may train as well as start */
	if (j->progress.phase == PHASE_NONE && j->progress.iteration == MO_NONE &&
	    rank_phase_of(s, j, rank) == PHASE_NONE)
		return RANK_UNKNOWN;
	return rank_engine_doing(s, j, rank);
}

/* Ranks that do this, "0-2, 4-7". */
static void ranges_text(struct mo_buf *b, const int *doing, size_t n, int what)
{
	size_t shown = 0;

	for (size_t i = 0; i < n; i++) {
		size_t from = i;

		if (doing[i] != what)
			continue;
		while (i + 1 < n && doing[i + 1] == what)
			i++;
		if (shown == RANGES_SHOWN) {
			mo_buf_str(b, ", ...");
			return;
		}
		mo_buf_printf(b, "%s%zu", shown++ ? ", " : "", from);
		if (i > from)
			mo_buf_printf(b, "-%zu", i);
	}
}

char *ranks_doing_text(const struct state *s, const struct job *j, int64_t now)
{
	_cleanup_(mo_freep) int *doing = mo_alloc_array(j->run.n_ranks + 1, sizeof(*doing));
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	size_t count[_RANK_DOING_N] = { 0 }, running = 0;

	for (size_t i = 0; i < j->run.n_ranks; i++) {
		doing[i] = rank_doing_of(s, j, i, now);
		if (doing[i] < 0)
			continue;
		running++;
		count[doing[i]]++;
	}
	if (count[RANK_STEPPING] == running)
		return NULL;
	for (int i = 0; i < _RANK_DOING_N; i++) {
		if (!count[i])
			continue;
		mo_buf_printf(&b, "%s%zu %s (", b.len ? ", " : "", count[i], rank_doing_names[i]);
		ranges_text(&b, doing, j->run.n_ranks, i);
		mo_buf_str(&b, ")");
	}
	return mo_strdup(b.data);
}
