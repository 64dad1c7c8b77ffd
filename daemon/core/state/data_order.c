/* See data_order.h. */
#include "daemon/core/state/data_order.h"

#include "lib/base/assert.h"

const char *const data_order_names[_DATA_ORDER_N] = { "unknown", "continues", "left-out",
						      "anew",    "repeats",   "skips" };

static const struct mo_field data_order_fields[] = {
	MO_D(data_order, attempt, MO_INT, "number of the attempt"),
	MO_D(data_order, resume, MO_INT, "iteration that it went on from"),
	MO_D_ENUM(data_order, kind, data_order_names, "how its data go on"),
	MO_D(data_order, iteration, MO_INT, "iteration whose line told"),
	MO_D(data_order, consumed, MO_INT, "samples consumed up to its end, as that line says"),
	MO_D(data_order, begins, MO_INT,
	     "samples consumed before the first iteration behind the checkpoint, by that line"),
	MO_D(data_order, ended, MO_INT,
	     "samples consumed at the checkpoint, as an attempt before had said"),
	MO_D(data_order, ended_by, MO_INT, "number of that attempt"),
	MO_D(data_order, samples, MO_INT, "samples that are repeated, skipped or left out"),
	MO_D(data_order, text, MO_STR, "all of it in a sentence"),
};
const struct mo_desc data_order_desc = MO_DESC(data_order, data_order_fields);

bool data_order_moved(const struct data_order *o)
{
	return o->kind == DATA_ANEW || o->kind == DATA_REPEATS || o->kind == DATA_SKIPS;
}

/* Samples of an iteration between two that told of it, in one attempt; MO_NONE: not so many whole
 * ones, or they did not. */
static int64_t rate(const struct sample *a, const struct sample *b)
{
	int64_t n = b->iteration - a->iteration,
		samples = b->consumed_samples - a->consumed_samples;

	if (a->attempt != b->attempt || a->consumed_samples == MO_NONE ||
	    b->consumed_samples == MO_NONE || samples < 0)
		return MO_NONE;
	mo_assert(n > 0);
	return samples % n ? MO_NONE : samples / n;
}

/* How many samples the iteration takes: as it says, or as its neighbours do. MO_NONE: unknown. */
static int64_t batch(const struct job *j, size_t at)
{
	const struct sample *s = &j->progress.samples[at];
	int64_t n = s->batch_samples;

	if (n == MO_NONE && at > 0)
		n = rate(s - 1, s);
	if (n == MO_NONE && at + 1 < j->progress.n_samples)
		n = rate(s, s + 1);
	return n;
}

/* consumed + n iterations of so many samples; MO_NONE: unknown, or more than there can be. */
static int64_t add(int64_t consumed, int64_t n, int64_t samples)
{
	int64_t sum;

	if (n == 0)
		return consumed;
	return samples == MO_NONE || __builtin_mul_overflow(n, samples, &sum) ||
			       __builtin_add_overflow(consumed, sum, &sum)
		       ? MO_NONE
		       : sum;
}

/* Newest sample that tells, of an attempt before, at an iteration or before it; NULL: none. An
 * attempt replaces what others did behind the iteration where it began. */
static const struct sample *newest(const struct job *j, int64_t attempt, int64_t iteration)
{
	const struct sample *of = NULL;

	for (size_t i = j->progress.n_samples; i-- > 0;) {
		const struct sample *s = &j->progress.samples[i];

		if (s->attempt >= attempt || s->iteration > iteration)
			continue;
		if (of && of->attempt != s->attempt)
			return NULL;
		if (s->consumed_samples != MO_NONE)
			return s;
		of = s;
	}
	return NULL;
}

/* Samples at the checkpoint, reckoned from the sample before it with batches that do not change up
 * to the one behind it; MO_NONE: unknown. */
static int64_t ended(const struct job *j, int64_t resume, const struct sample *s)
{
	size_t at = (size_t)(s - j->progress.samples);
	int64_t n = batch(j, at), next = MO_NONE;

	if (at + 1 < j->progress.n_samples && s[1].attempt == s->attempt)
		next = batch(j, at + 1);
	if (s->iteration != resume && next != MO_NONE && next != n)
		return MO_NONE;
	return add(s->consumed_samples, resume - s->iteration, n);
}

/* Iterations from `first` on whose data are left out, each once. */
static int64_t left_out(const struct job *j, int64_t first)
{
	int64_t n = 0;

	for (size_t i = 0; i < j->n_skips; i++)
		for (int64_t k = MO_MAX(j->skips[i].first, first); k <= j->skips[i].last; k++) {
			bool again = false;

			for (size_t before = 0; before < i; before++)
				again |= j->skips[before].first <= k && k <= j->skips[before].last;
			n += !again;
		}
	return n;
}

/* Engines that skip data without an iteration: what the windows hold, and no more. Some of them
 * count the checkpoint's own iteration (skip.h). */
static bool asked(const struct job *j, int64_t resume, int64_t samples, int64_t n)
{
	return samples > 0 && (samples == add(0, left_out(j, resume), n) ||
			       samples == add(0, left_out(j, resume + 1), n));
}

/* Two figures that are known. */
static void compare(const struct job *j, int64_t n, struct data_order *o)
{
	int64_t more = o->begins - o->ended;

	o->samples = more < 0 ? -more : more > 0 ? more : MO_NONE;
	o->kind = more == 0                      ? DATA_CONTINUES
		  : asked(j, o->resume, more, n) ? DATA_LEFT_OUT
		  : o->begins == 0               ? DATA_ANEW
		  : more < 0                     ? DATA_REPEATS
						 : DATA_SKIPS;
	if (o->kind == DATA_CONTINUES)
		o->text =
			mo_printf("attempt %lld goes on with its data: %lld samples were consumed "
				  "at "
				  "iteration %lld, as attempt %lld said, and iteration %lld went "
				  "on from there",
				  (long long)o->attempt, (long long)o->ended, (long long)o->resume,
				  (long long)o->ended_by, (long long)o->iteration);
	else
		o->text = mo_printf("attempt %lld %s%lld samples%s: %lld were consumed at "
				    "iteration %lld, as "
				    "attempt %lld said, and iteration %lld says %lld, which begins "
				    "at %lld",
				    (long long)o->attempt,
				    o->kind == DATA_LEFT_OUT ? "leaves out "
				    : o->kind == DATA_ANEW   ? "begins its data anew and repeats "
				    : o->kind == DATA_SKIPS  ? "skips "
							     : "repeats ",
				    (long long)o->samples,
				    o->kind == DATA_LEFT_OUT ? " as recovery.loss_spike.skip asks"
							     : "",
				    (long long)o->ended, (long long)o->resume,
				    (long long)o->ended_by, (long long)o->iteration,
				    (long long)o->consumed, (long long)o->begins);
}

static void unknown(struct data_order *o, const char *why)
{
	o->kind = DATA_UNKNOWN;
	o->text = mo_printf("whether attempt %lld goes on with its data behind iteration %lld is "
			    "not known: %s",
			    (long long)o->attempt, (long long)o->resume, why);
}

/* It is the second iteration of the attempt that was heard of: nothing more is waited for. */
static bool second(const struct job *j, size_t at)
{
	const struct sample *s = &j->progress.samples[at];

	return at > 0 && s[-1].attempt == s->attempt && s[-1].iteration > j->run.resume;
}

/* Both tell of one iteration, and the same: whatever the batches up to there were. */
static bool same_there(const struct sample *before, const struct sample *s, struct data_order *o)
{
	if (!before || before->iteration != s->iteration ||
	    before->consumed_samples != s->consumed_samples)
		return false;
	o->kind = DATA_CONTINUES;
	o->text = mo_printf("attempt %lld goes on with its data: %lld samples were consumed "
			    "through iteration %lld in it and in attempt %lld",
			    (long long)o->attempt, (long long)s->consumed_samples,
			    (long long)s->iteration, (long long)before->attempt);
	return true;
}

static void told(const struct job *j, size_t at, struct data_order *o)
{
	const struct sample *s = &j->progress.samples[at],
			    *before = newest(j, o->attempt, o->resume);
	int64_t n = batch(j, at), old = MO_NONE;

	o->begins = add(s->consumed_samples, o->resume - s->iteration, n);
	if (before) {
		old = batch(j, (size_t)(before - j->progress.samples));
		o->ended = ended(j, o->resume, before);
		o->ended_by = before->attempt;
		if (same_there(newest(j, before->attempt + 1, s->iteration), s, o))
			return;
	}
	if (o->begins == MO_NONE)
		unknown(o, "its lines do not say how many samples an iteration takes");
	else if (o->begins < 0)
		unknown(o, "its lines say fewer samples than its iterations take");
	else if (o->ended == MO_NONE)
		unknown(o, "no attempt before said how many samples were consumed there");
	else if (o->begins != o->ended && s->iteration > o->resume + 1 && n != old)
		unknown(o, "the batch was of another size by the first iteration that told");
	else
		compare(j, n, o);
}

bool data_order_judge(const struct job *j, size_t at, struct data_order *ret)
{
	const struct sample *s = &j->progress.samples[at];

	if (s->attempt != j->attempt || j->run.resume <= 0 || s->iteration <= j->run.resume)
		return false;
	if (s->consumed_samples == MO_NONE ? !second(j, at)
					   : batch(j, at) == MO_NONE && !second(j, at))
		return false;
	ret->attempt = j->attempt;
	ret->resume = j->run.resume;
	if (s->consumed_samples == MO_NONE) {
		unknown(ret, "the engine does not say how many samples were consumed");
		return true;
	}
	ret->iteration = s->iteration;
	ret->consumed = s->consumed_samples;
	told(j, at, ret);
	return true;
}
