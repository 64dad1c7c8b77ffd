/* See numbers.h. */
#include "daemon/core/update/numbers.h"

#include "daemon/core/state/checkpoint.h"
#include "lib/base/assert.h"

#define CLOCKS_OFF_US (60 * 1000000LL) /* a file system's and the controller's */
#define QUIET 100 /* iterations: a loss that is bad now and then is told of once in so many */

/* An engine that leaves a NaN out may as well print its loss under another name. */
static bool leaves_nan_out(const struct engine *e)
{
	for (size_t i = 0; i < e->n_rules; i++)
		if (e->rules[i].missing_loss_is_nan)
			return true;
	return false;
}

static struct numbers *numbers_get(struct job *j)
{
	struct numbers *n = j->progress.numbers;

	if (!n) {
		n = j->progress.numbers = mo_desc_new(&numbers_desc);
		n->trusted = !leaves_nan_out(&j->spec.engine);
		n->episodes = n->rollbacks = n->grads = 0;
	}
	if (n->attempt != j->attempt) {
		n->attempt = j->attempt;
		n->judged = MO_NONE;
		n->good = MO_MAX(j->run.resume, 0);
		n->told = n->grad_at = MO_NONE;
		n->kind = NUMBER_GOOD;
	}
	return n;
}

/* What is known of who saved it, and of the loss, which is of the attempt at hand. */
static char *taint(const struct job *j, int64_t attempt, const char *what)
{
	_cleanup_(mo_freep) char *saved =
		attempt == 0         ? mo_strdup("saved behind the backup that was restored")
		: attempt == MO_NONE ? mo_strdup("it lay there before")
				     : mo_printf("saved by attempt %lld", (long long)attempt);

	return attempt == j->attempt
		       ? mo_printf("%s when %s", saved, what)
		       : mo_printf("%s; in attempt %lld %s", saved, (long long)j->attempt, what);
}

void numbers_mark(const struct job *j, struct checkpoint *c, int64_t attempt)
{
	_cleanup_(mo_freep) char *what = numbers_taint(j, c->iteration) ? numbers_text(j) : NULL;

	free(c->tainted);
	c->tainted = what ? taint(j, attempt, what) : NULL;
}

/* What the attempt saved, and what it began with: the first loss behind it may be bad, or good. */
static void mark_all(struct job *j)
{
	for (size_t i = j->n_checkpoints; i-- > 0;)
		if (j->checkpoints[i].attempt == j->attempt ||
		    j->checkpoints[i].iteration == j->run.resume)
			numbers_mark(j, &j->checkpoints[i], j->checkpoints[i].attempt);
}

static void bad(struct job *j, struct numbers *n, const struct sample *s, int kind, double usual)
{
	bool begins = !numbers_bad(j);

	n->row = n->kind == kind ? n->row + 1 : 1;
	n->kind = kind;
	if (n->row > 1)
		return;
	if (begins)
		j->progress.spike = n->begin = s->iteration;
	n->since = s->iteration;
	n->loss = s->loss;
	n->usual = usual;
	if (n->told == MO_NONE || s->iteration - n->told > QUIET ||
	    (kind == NUMBER_NAN && n->told_kind != kind)) {
		n->told = s->iteration;
		n->told_kind = kind;
		n->episodes++;
	}
	mark_all(j);
}

static void good(struct job *j, struct numbers *n, int64_t iteration, bool first)
{
	bool over = numbers_bad(j);

	n->good = iteration;
	n->kind = NUMBER_GOOD;
	n->trusted = true;
	if (over || first)
		mark_all(j);
}

static void grad(const struct job *j, struct numbers *n, size_t at)
{
	const struct sample *s = &j->progress.samples[at];
	double usual;

	if (!numbers_grad_spike(j, at, &usual) ||
	    (n->grad_at != MO_NONE && s->iteration - n->grad_at <= QUIET))
		return;
	n->grads = MO_MAX(n->grads, 0) + 1; /* in a state of a version before it is unknown */
	n->grad_at = s->iteration;
	n->grad = s->grad_norm;
	n->grad_usual = usual;
}

void numbers_sample(struct job *j, size_t at)
{
	const struct sample *s = &j->progress.samples[at];
	enum number_kind kind = number_of_sample(s);
	double usual = MO_NONE_F;
	struct numbers *n;
	bool first;

	/* decided: what comes while the ranks are killed changes nothing any more */
	if (kind == NUMBER_NONE || s->attempt != j->attempt || j->failure.decided ||
	    mo_streq(j->spec.recipe.loss_action, "none"))
		return;
	n = numbers_get(j);
	first = n->judged == MO_NONE;
	if (!first && s->iteration <= n->judged)
		return;
	n->judged = s->iteration;
	grad(j, n, at);
	if (kind == NUMBER_GOOD && numbers_spike(j, at, &usual) &&
	    !(n->kind == NUMBER_SPIKE && n->row >= NUMBERS_LEVEL))
		kind = NUMBER_SPIKE;
	if (kind == NUMBER_GOOD)
		good(j, n, s->iteration, first);
	else
		bad(j, n, s, kind, usual);
}

/* The other job's entry is of these files. */
static bool same_files(const struct checkpoint *theirs, const struct checkpoint *found)
{
	if (!mo_streq(theirs->path, found->path))
		return false;
	return theirs->manifest && found->manifest
		       ? mo_streq(theirs->manifest, found->manifest)
		       : theirs->saved_at != MO_NONE &&
				 found->saved_at <= theirs->saved_at + CLOCKS_OFF_US;
}

void numbers_inherit(const struct state *s, struct job *j)
{
	for (size_t i = 0; j->attempt == 0 && i < s->n_jobs; i++) {
		const struct job *k = s->jobs[i];

		for (size_t at = 0;
		     k != j && mo_streq(k->saves.dir, j->saves.dir) && at < j->n_checkpoints;
		     at++) {
			struct checkpoint *c = &j->checkpoints[at];
			const struct checkpoint *theirs = checkpoint_find(k, c->iteration);

			if (theirs && checkpoint_tainted(theirs) && !c->tainted &&
			    same_files(theirs, c))
				c->tainted =
					mo_printf("j-%lld: %s", (long long)k->id, theirs->tainted);
		}
	}
}

int64_t numbers_rollbacks(const struct job *j)
{
	const struct numbers *n = j->progress.numbers;

	return n->place == MO_NONE || checkpoint_newest_at_most(j, INT64_MAX, false) > n->place
		       ? 0
		       : n->rollbacks;
}

void numbers_went_back(struct job *j)
{
	struct numbers *n = j->progress.numbers;
	int64_t before = numbers_rollbacks(j);

	mo_assert(numbers_fault(j));
	n->place = before ? MO_MAX(n->place, n->begin) : n->begin;
	n->rollbacks = before + 1;
}

void numbers_forgive(struct job *j)
{
	if (!j->progress.numbers)
		return;
	j->progress.numbers->rollbacks = 0;
	j->progress.numbers->place = MO_NONE;
}
