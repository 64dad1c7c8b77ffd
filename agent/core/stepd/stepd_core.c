/* The step supervisor's decisions: the ranks of one attempt on one node, from launch to "gone".
 *
 * stepd_core_decide() is called by moe-stepd for each thing that happened, one after the other, and
 * by the simulator; effects are carried out in their order before the next event. What each event
 * does in each state is the table (stepd_table.c), which stepd_core_decide() runs by and
 * docs/states.md prints: an event without a cell does nothing there. What its functions do stands
 * in stepd_start.c (until ranks run), stepd_end.c (until nothing is left) and stepd_facts.c (what
 * ranks say of themselves).
 *
 * Invariants: notes are numbered from 1 without gaps; NOTE_GONE is written exactly once, last, and
 * only when no process of the step is left; every rank that started has one NOTE_EXIT before it.
 *
 * What never happens: a touch of the world; a rank that is started a second time (a new attempt is
 * a new supervisor); a kill that is called done because a signal was sent: only SE_EMPTY proves
 * it, and until it comes the kill is repeated, ever more rarely. */
#include "agent/core/stepd/stepd_core_state.h"
#include "agent/core/stepd/stepd_table.h"

#include "lib/base/assert.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

struct stepd_core *stepd_core_new(const struct launch *l, bool own_namespace)
{
	struct stepd_core *s = mo_alloc(sizeof(*s));

	mo_desc_init(&launch_desc, &s->launch);
	mo_desc_copy(&launch_desc, &s->launch, l);
	mo_desc_init(&note_desc, &s->sample);
	mo_desc_init(&note_desc, &s->checkpoint);
	s->own_namespace = own_namespace;
	s->samples.us = (int64_t)SAMPLES_BURST * SAMPLE_US;
	s->words.us = (int64_t)WORDS_BURST * WORD_US;
	s->n_ranks = l->n_local > 0 ? (size_t)l->n_local : 0;
	s->ranks = mo_alloc_array(s->n_ranks + 1, sizeof(*s->ranks));
	for (size_t i = 0; i < s->n_ranks; i++) {
		mo_desc_init(&rank_progress_desc, &s->ranks[i].progress);
		s->ranks[i].progress.rank = l->first_rank + (int64_t)i;
	}
	s->phase = PHASE_NONE;
	s->phase_rank = SIZE_MAX;
	s->sample_last = s->saving = s->resumed = MO_NONE;
	mo_assert(s->state == NEW && s->n_started == 0);
	return s;
}

struct stepd_core *stepd_core_free(struct stepd_core *s)
{
	if (!s)
		return NULL;
	mo_desc_done(&launch_desc, &s->launch);
	mo_desc_done(&note_desc, &s->sample);
	mo_desc_done(&note_desc, &s->checkpoint);
	free(s->saves_to);
	free(s->saving_to);
	free(s->ranks);
	free(s->stuck);
	free(s);
	return NULL;
}

void stepd_out_done(struct stepd_out *out)
{
	for (size_t i = 0; i < out->n_effects; i++)
		mo_desc_done(&note_desc, &out->effects[i].note);
	free(out->effects);
	*out = (struct stepd_out){ 0 };
}

bool note_urgent(const struct note *n)
{
	bool exit = n->kind == NOTE_EXIT &&
		    !mo_streq(n->cause,
			      /* the killed ones travel with the proof that all are gone, a moment
			 * later */
			      "killed");

	return exit || n->kind == NOTE_REFUSED || n->kind == NOTE_LOST || n->kind == NOTE_GONE ||
	       n->kind == NOTE_RUNNING || n->kind == NOTE_UNKILLABLE || n->kind == NOTE_STOPPING;
}

void stepd_core_decide(struct stepd_core *s, const struct stepd_event *e, int64_t now_us,
		       struct stepd_out *out)
{
	stepd_fn fn = stepd_table_fn((int)s->state, e->type);

	assert(e->type >= 0 && e->type < _SE_N && s->state < _STATE_N);
	if (fn)
		fn(s, e, now_us, out);
}

int64_t stepd_core_deadline(const struct stepd_core *s)
{
	int64_t d = INT64_MAX;

	if (s->state == GONE)
		return d;
	if (s->pending)
		d = s->sample_due;
	if (s->state == PREPARING)
		d = s->prepare_due;
	if (s->state == STOPPING || s->state == DOWN)
		d = MO_MIN(d, s->kill_at);
	mo_assert(s->state != GONE);
	return d;
}

void stepd_core_progress(const struct stepd_core *s, size_t i, struct rank_progress *ret)
{
	assert(i < s->n_ranks);
	*ret = s->ranks[i].progress;
}

int64_t stepd_core_words_left(const struct stepd_core *s)
{
	return s->words_left;
}

int64_t stepd_core_left_out(const struct stepd_core *s)
{
	return s->left_out;
}
