/* See numbers.h. */
#include "daemon/core/rules/numbers.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/update/numbers.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/model/failure.h"

struct numbers_told numbers_told(const struct job *j)
{
	const struct numbers *n = j->progress.numbers;

	return n ? (struct numbers_told){ n->episodes, MO_MAX(n->grads, 0) }
		 : (struct numbers_told){ 0 };
}

void numbers_tell_tainted(struct turn *t, int64_t id, const struct checkpoint *c)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_int(&b, "iteration", c->iteration);
	data_str(&b, "path", c->path);
	data_str(&b, "reason", c->tainted);
	event_emit(t, EVENT_CHECKPOINT_TAINTED, id, NULL, MO_NONE, c->attempt, data_end(&b),
		   "checkpoint %lld is tainted: %s", (long long)c->iteration, c->tainted);
}

/* What was saved before anybody knew; what is saved from now on tells of itself. */
static void tell_saved(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);

	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (checkpoint_tainted(&j->checkpoints[i]) &&
		    j->checkpoints[i].iteration < j->progress.numbers->since &&
		    numbers_taint(j, j->checkpoints[i].iteration))
			numbers_tell_tainted(t, id, &j->checkpoints[i]);
}

static void tell_grad(struct turn *t, int64_t id, const struct numbers *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *usual =
		n->grad_usual == MO_NONE_F
			? mo_strdup("no number")
			: mo_printf("%g, where %g was usual", n->grad, n->grad_usual);

	data_int(&b, "iteration", n->grad_at);
	if (n->grad_usual != MO_NONE_F) {
		data_real(&b, "grad_norm", n->grad);
		data_real(&b, "usual", n->grad_usual);
	}
	event_emit(t, EVENT_GRAD_SPIKE, id, NULL, MO_NONE, n->attempt, data_end(&b),
		   "the gradient norm of iteration %lld is %s", (long long)n->grad_at, usual);
}

void numbers_tell(struct turn *t, int64_t id, const struct numbers_told *before)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct numbers *n = j->progress.numbers;
	struct numbers_told now = numbers_told(j);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *text = NULL;

	if (now.grads != before->grads)
		tell_grad(t, id, n);
	if (now.episodes == before->episodes)
		return;
	text = numbers_text(j);
	data_int(&b, "iteration", n->since);
	if (n->usual != MO_NONE_F) {
		data_real(&b, "loss", n->loss);
		data_real(&b, "usual", n->usual);
	}
	event_emit(t, n->usual != MO_NONE_F ? EVENT_LOSS_SPIKE : EVENT_LOSS_NAN, id, NULL, MO_NONE,
		   n->attempt, data_end(&b), "%s%s", text,
		   n->trusted ? "" : ", or the engine prints none");
	tell_saved(t, id);
}

bool numbers_spent(const struct job *j)
{
	int64_t max = j->spec.recipe.max_rollbacks;

	return numbers_rollbacks(j) >= (max == MO_NONE ? NUMBERS_ROLLBACKS_MAX : max);
}

char *numbers_cause(const struct job *j)
{
	mo_assert(j->progress.numbers);
	return mo_strdup(j->progress.numbers->kind == NUMBER_SPIKE ? "loss too high" : "loss NaN");
}

char *numbers_next(const struct job *j)
{
	int64_t newest = checkpoint_newest_at_most(j, INT64_MAX, false);

	if (newest == MO_NONE)
		return mo_strdup("the next attempt is prepared");
	return mo_printf("the job goes back to checkpoint %lld, the newest of before",
			 (long long)newest);
}

char *numbers_stop(const struct job *j, const char *cause)
{
	bool fault = numbers_fault(j);
	int64_t times = fault ? numbers_rollbacks(j) : 0;
	_cleanup_(mo_freep) char *text = fault ? numbers_text(j) : mo_strdup(cause),
				 *back = mo_printf(", and the job went back from there %lld time%s "
						   "before: it is the data or the model",
						   (long long)times, times == 1 ? "" : "s"),
				 *left = mo_printf(", and %zu window%s of data %s left out already "
						   "(recovery.loss_spike.skip)",
						   j->n_skips, j->n_skips == 1 ? "" : "s",
						   j->n_skips == 1 ? "is" : "are");

	return mo_printf("%s%s%s ('moectl metrics j-%lld'); 'moectl restart j-%lld --from ITER' "
			 "goes further back",
			 text, times ? back : "", j->n_skips ? left : "", (long long)j->id,
			 (long long)j->id);
}

/* ---- data that is left out ---- */

bool numbers_may_skip(const struct job *j, int class)
{
	return class == FAIL_NUMERICAL && (int64_t)j->n_skips < j->spec.recipe.skips;
}

bool numbers_skipped_all(const struct job *j)
{
	return j->spec.recipe.skips > 0 && !numbers_may_skip(j, FAIL_NUMERICAL);
}

struct skip numbers_skip(const struct job *j, int64_t now)
{
	const struct numbers *n = numbers_fault(j) ? j->progress.numbers : NULL;
	int64_t newest = checkpoint_newest_at_most(j, INT64_MAX, false),
		reached = MO_MAX(MO_MAX(j->progress.iteration, j->run.resume), 0),
		good = n ? n->good : reached, last = n ? n->judged : reached + 1,
		first = MO_MAX(MO_MAX(newest, 0), good + 1 - SKIP_MARGIN);

	mo_assert(first <= last);
	return (struct skip){ .time = now,
			      .attempt = j->attempt,
			      .first = first,
			      .last = MO_MIN(last, first + SKIP_ITERATIONS_MAX - 1) };
}

char *numbers_skip_text(const struct job *j)
{
	const struct skip *s = &j->skips[j->n_skips - 1];

	return mo_printf("the data of iterations %lld to %lld are left out from now on (%zu of "
			 "%lld windows)",
			 (long long)s->first, (long long)s->last, j->n_skips,
			 (long long)j->spec.recipe.skips);
}

void numbers_tell_skip(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct skip *s = &j->skips[j->n_skips - 1];
	_cleanup_(mo_freep) char *text = numbers_skip_text(j);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_int(&b, "first", s->first);
	data_int(&b, "last", s->last);
	data_int(&b, "window", (int64_t)j->n_skips);
	data_int(&b, "of", j->spec.recipe.skips);
	event_emit(t, EVENT_LOSS_SKIP, id, NULL, MO_NONE, s->attempt, data_end(&b), "%s", text);
}

void numbers_evidence(const struct job *j, char ***texts, size_t *n_texts)
{
	const struct numbers *n = j->progress.numbers;
	_cleanup_(mo_freep) char *text = numbers_text(j), *row = NULL;

	row = mo_printf("%lld in a row; the last good one was of iteration %lld", (long long)n->row,
			(long long)n->good);
	mo_strs_add(texts, n_texts, text);
	mo_strs_add(texts, n_texts, row);
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		const struct checkpoint *c = &j->checkpoints[i];
		_cleanup_(mo_freep) char *line = NULL;

		if (!checkpoint_tainted(c) || !numbers_taint(j, c->iteration))
			continue;
		line = mo_printf("checkpoint %lld is tainted", (long long)c->iteration);
		mo_strs_add(texts, n_texts, line);
	}
}
