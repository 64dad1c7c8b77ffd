/* The notes of a step, and what lines and datagrams of its ranks add to them: samples, phases,
 * saves. A sample waits SAMPLE_WAIT_US for more pieces (a datagram and a printed line tell of
 * the same iteration); any other note writes it first. One iteration has at most one
 * NOTE_SAMPLE. */
#include "agent/core/stepd/stepd_facts.h"
#include "agent/core/text/lines.h"
#include "lib/base/assert.h"
#include "lib/base/desc_fit.h"

#define SAMPLE_WAIT_US 100000

struct stepd_effect *stepd_effect(struct stepd_out *out, int type)
{
	struct stepd_effect *e = MO_GROW(out->effects, out->n_effects);

	e->type = type;
	mo_desc_init(&note_desc, &e->note);
	return e;
}

/* The number is given here and nowhere else. */
static struct note *put_note(struct stepd_core *s, struct stepd_out *out, int kind,
			     const struct note *from)
{
	struct note *n = &stepd_effect(out, SX_NOTE)->note;

	mo_assert(kind >= 0 && kind < _NOTE_KIND_N);
	/* it is the last one; a sample that waited comes before it */
	mo_assert(s->state != GONE || kind == NOTE_GONE || kind == NOTE_SAMPLE);
	if (from)
		mo_desc_copy(&note_desc, n, from);
	n->kind = kind;
	n->n = ++s->n_notes;
	return n;
}

void stepd_core_flush_sample(struct stepd_core *s, struct stepd_out *out)
{
	if (!s->pending)
		return;
	mo_assert(s->sample.iteration > s->sample_last && s->left_reported <= s->left_out);
	s->pending = false;
	s->sample_last = s->sample.iteration;
	struct note *n = put_note(s, out, NOTE_SAMPLE, NULL);
	n->rank = s->sample.rank;
	n->sample = TAKE_PTR(s->sample.sample); /* moved: thousands a second may come */
	n->time = s->sample.time;
	n->mono_ns = s->sample.mono_ns;
	if (s->left_out > s->left_reported)
		n->left_out = s->left_out - s->left_reported;
	s->left_reported = s->left_out;
}

/* Every iteration is reported, as long as they come no faster than anybody trains; of a flood only
 * as many as there is room for, and the last one. */
static bool take_room(struct room *r, int64_t full, int64_t cost, int64_t now)
{
	mo_assert(r->us >= 0 && cost > 0);
	r->us = MO_MIN(full, r->us + MO_MAX(now - r->at, 0));
	r->at = now;
	if (r->us < cost)
		return false;
	r->us -= cost;
	return true;
}

static bool sample_room(struct stepd_core *s, int64_t now)
{
	return take_room(&s->samples, (int64_t)SAMPLES_BURST * SAMPLE_US, SAMPLE_US, now);
}

/* A program that says one thing and then the other as fast as it can would fill the disk of the
 * journals, which is every job's, and the agent's memory. What has no room counts as never said:
 * it is reported when it is said again. */
static bool word_room(struct stepd_core *s, const struct note *fact, int64_t now)
{
	int64_t pieces = 1 + (int64_t)mo_desc_text_bytes(&note_desc, fact) / WORD_BYTES;
	bool room = take_room(&s->words, (int64_t)WORDS_BURST * WORD_US, pieces * WORD_US, now);

	s->words_left += !room;
	return room;
}

struct note *stepd_core_note(struct stepd_core *s, struct stepd_out *out, int kind,
			     const struct note *from)
{
	stepd_core_flush_sample(s, out);
	return put_note(s, out, kind, from);
}

struct local_rank *stepd_core_rank_of(struct stepd_core *s, const struct note *n)
{
	int64_t i = n->rank == MO_NONE ? -1 : n->rank - s->launch.first_rank;

	return i >= 0 && (size_t)i < s->n_ranks ? &s->ranks[i] : NULL;
}

static void advance(struct local_rank *r, int64_t iteration)
{
	if (iteration != MO_NONE &&
	    (r->progress.iteration == MO_NONE || iteration > r->progress.iteration))
		r->progress.iteration = iteration;
}

/* Whether samples of this rank become notes. `any`: whoever tells of an iteration first owns it. */
static bool is_metrics_rank(const struct stepd_core *s, int64_t rank, int64_t iteration)
{
	if (s->launch.metrics_rank == 0)
		return rank == 0;
	if (s->launch.metrics_rank == 1)
		return rank == s->launch.world - 1;
	return !s->pending || s->sample.rank == rank || s->sample.iteration != iteration;
}

static void tell_phase(struct stepd_core *s, struct local_rank *r, const struct note *fact,
		       int phase, int64_t now, struct stepd_out *out)
{
	size_t index = (size_t)(r - s->ranks);

	mo_assert(index < s->n_ranks);
	if (phase <= PHASE_NONE || phase >= _PHASE_N)
		return;
	r->progress.phase = phase;
	if (index > s->phase_rank)
		return;
	s->phase_rank = index;
	if (phase == s->phase || !word_room(s, fact, now))
		return;
	s->phase = phase;
	struct note *n = stepd_core_note(s, out, NOTE_PHASE, fact);
	n->phase = phase;
	n->iteration = MO_NONE;
}

static void tell_sample(struct stepd_core *s, struct local_rank *r, const struct note *fact,
			int64_t now, struct stepd_out *out)
{
	if (!fact->sample)
		return;
	if (r->progress.phase == PHASE_INIT || r->progress.phase == PHASE_LOAD)
		tell_phase(s, r, fact, PHASE_TRAIN, now,
			   out); /* an engine that does not say when it begins to train */
	int64_t iteration = fact->sample->iteration != MO_NONE ? fact->sample->iteration
							       : r->progress.iteration;
	advance(r, iteration);
	if (fact->sample->step_ms != MO_NONE_F)
		r->progress.step_ms = fact->sample->step_ms;
	if (iteration == MO_NONE || (s->sample_last != MO_NONE && iteration <= s->sample_last) ||
	    !is_metrics_rank(s, fact->rank, iteration))
		return;
	if (s->pending && iteration < s->sample.iteration)
		return;
	if (s->pending && iteration != s->sample.iteration) {
		if (sample_room(s, now)) {
			stepd_core_flush_sample(s, out);
		} else {
			s->pending = false;
			s->left_out++;
		}
	}
	if (s->pending) {
		sample_merge(s->sample.sample, fact->sample);
		return;
	}
	if (!s->sample.sample)
		s->sample.sample = mo_alloc(sizeof(*s->sample.sample));
	*s->sample.sample = *fact->sample; /* plain values: tens of thousands a second may come */
	s->sample.rank = fact->rank;
	s->sample.time = fact->time;
	s->sample.mono_ns = fact->mono_ns;
	s->sample.iteration = s->sample.sample->iteration = iteration;
	if (s->sample.sample->phase == PHASE_NONE)
		s->sample.sample->phase = r->progress.phase;
	s->pending = true;
	s->sample_due = now + SAMPLE_WAIT_US;
}

static void tell_checkpoint(struct stepd_core *s, const struct note *fact, int64_t now,
			    struct stepd_out *out)
{
	bool again =
		s->checkpoint.kind == NOTE_CHECKPOINT && s->checkpoint.iteration == fact->iteration;

	if (again && (fact->iteration != MO_NONE || mo_streq(s->checkpoint.path, fact->path)))
		return;
	if (!word_room(s, fact, now))
		return;
	mo_desc_copy(&note_desc, &s->checkpoint, fact);
	s->checkpoint.kind = NOTE_CHECKPOINT;
	stepd_core_note(s, out, NOTE_CHECKPOINT, fact);
}

/* Every rank of a job may print the same save or resume line: one note each. */
static void tell_iteration(struct stepd_core *s, int kind, int64_t *reported,
			   const struct note *fact, int64_t now, struct stepd_out *out)
{
	if (fact->iteration == MO_NONE || *reported == fact->iteration || !word_room(s, fact, now))
		return;
	*reported = fact->iteration;
	stepd_core_note(s, out, kind, fact);
}

/* The same of a save, but where it has two places: a program of one's own may keep one more on a
 * disk of the node. */
static void tell_saving(struct stepd_core *s, const struct note *fact, int64_t now,
			struct stepd_out *out)
{
	bool beside = s->saving == fact->iteration && s->saving_to && fact->path &&
		      !s->saving_beside && !mo_streq(s->saving_to, fact->path);

	if (fact->iteration == MO_NONE || (s->saving == fact->iteration && !beside) ||
	    !word_room(s, fact, now))
		return;
	s->saving = fact->iteration;
	s->saving_beside = beside;
	mo_str_set(&s->saving_to, fact->path);
	stepd_core_note(s, out, NOTE_SAVING, fact);
}

/* Of a saving line that names its place alone: before the first iteration that is where all
 * saves go, whatever it ends in; later one that ends in digits is one checkpoint. */
static int64_t number_of(const struct local_rank *r, const struct note *fact)
{
	return r->progress.iteration == MO_NONE ? MO_NONE : line_path_number(fact->path);
}

void stepd_core_on_sample(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (r && e->busy_ms > 0)
		r->progress.busy_ms = e->busy_ms;
	if (r)
		tell_sample(s, r, &e->note, now, out);
}

void stepd_core_on_phase(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (!r)
		return;
	advance(r, e->note.iteration);
	tell_phase(s, r, &e->note, e->note.phase, now, out);
}

void stepd_core_on_ready(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (!r)
		return;
	advance(r, e->note.iteration);
	tell_phase(s, r, &e->note, e->note.phase > PHASE_NONE ? e->note.phase : PHASE_TRAIN, now,
		   out);
}

/* "Saving the checkpoint": that of the iteration just reported. Without a place: where all of them
 * go. */
static void complete_fact(const struct stepd_core *s, const struct local_rank *r, struct note *fact)
{
	if (fact->iteration == MO_NONE && !fact->path)
		fact->iteration = r->progress.iteration;
	if (!fact->path)
		fact->path = s->saves_to;
}

void stepd_core_on_checkpoint(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			      struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (!r)
		return;
	struct note fact = e->note; /* borrowed */

	complete_fact(s, r, &fact);
	advance(r, e->note.iteration);
	tell_checkpoint(s, &fact, now, out);
}

void stepd_core_on_saving(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (!r)
		return;
	struct note fact = e->note; /* borrowed */

	if (fact.iteration == MO_NONE && fact.path) {
		fact.iteration = number_of(r, &fact);
		if (fact.iteration == MO_NONE && *fact.path != '/')
			return; /* what a relative one means nobody here knows */
		mo_str_set(&s->saves_to, fact.iteration == MO_NONE ? fact.path : NULL);
		if (fact.iteration == MO_NONE)
			return;
	}
	complete_fact(s, r, &fact);
	tell_saving(s, &fact, now, out);
}

void stepd_core_on_resumed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, &e->note);

	if (!r)
		return;
	advance(r, e->note.iteration);
	tell_iteration(s, NOTE_RESUMED, &s->resumed, &e->note, now, out);
}
