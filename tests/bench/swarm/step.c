/* See step.h. */
#include "tests/bench/swarm/step.h"

#include "lib/base/clock.h"

#define SIGNAL_FAULT 11

static struct note *add(struct swarm_step *s, int kind)
{
	struct note *n = MO_ADD(s, notes, &note_desc);

	n->n = ++s->written;
	n->kind = kind;
	n->time = mo_clock_wall_us();
	n->mono_ns = mo_clock_mono_ns();
	return n;
}

void step_begin(struct swarm_step *s, const struct command *launch, int64_t due_ns)
{
	*s = (struct swarm_step){
		.job = launch->job,
		.attempt = launch->attempt,
		.first_rank = launch->launch->first_rank,
		.n_ranks = launch->launch->n_local,
		.state = STEP_STARTING,
		.iteration = MO_MAX(launch->launch->resume, 0),
		.due_ns = due_ns,
		.first = launch->launch->first_rank == 0,
	};
}

void step_done(struct swarm_step *s)
{
	mo_vec_clear(&note_desc, (void **)&s->notes, &s->n_notes);
}

void step_run(struct swarm_step *s, int64_t end_ns)
{
	for (int64_t i = 0; i < s->n_ranks; i++) {
		struct note *n = add(s, NOTE_STARTED);

		n->rank = s->first_rank + i;
		n->pid = 1000 + n->rank % 100000;
		n->start_time = 1;
		n->cpus = mo_strdup("0-5");
		n->numa_node = 0;
		n->bind_verified = 1;
	}
	add(s, NOTE_RUNNING);
	s->state = STEP_RUNNING;
	s->due_ns = end_ns;
}

static void ends(struct swarm_step *s, int64_t rank, int64_t signal)
{
	struct note *n = add(s, NOTE_EXIT);

	n->rank = rank;
	n->pid = 1000 + rank % 100000;
	n->cause = mo_strdup(signal ? "signalled" : "exited");
	if (signal)
		n->signal = signal;
	else
		n->code = 0;
}

bool step_end(struct swarm_step *s, int64_t signal)
{
	struct note *n;

	if (s->state == STEP_GONE)
		return false;
	if (s->state != STEP_STARTING)
		for (int64_t i = s->state == STEP_STOPPING; i < s->n_ranks; i++)
			ends(s, s->first_rank + i, signal);
	n = add(s, NOTE_GONE);
	n->text = mo_strdup("emulated");
	s->state = STEP_GONE;
	s->due_ns = INT64_MAX;
	return true;
}

/* Stopping: its first rank is gone, the others stand. */
bool step_fail(struct swarm_step *s)
{
	if (s->state != STEP_RUNNING)
		return false;
	ends(s, s->first_rank, SIGNAL_FAULT);
	s->state = STEP_STOPPING;
	return true;
}

void step_advance(struct swarm_step *s)
{
	struct sample *v;

	if (s->state != STEP_RUNNING)
		return;
	s->iteration++;
	if (!s->first)
		return;
	v = mo_desc_new(&sample_desc);
	v->iteration = s->iteration;
	v->time = mo_clock_wall_us();
	v->loss = 2;
	v->step_ms = 1000;
	v->attempt = s->attempt;
	add(s, NOTE_SAMPLE)->sample = v;
	s->notes[s->n_notes - 1].rank = 0;
}

void step_acknowledged(struct swarm_step *s, int64_t through)
{
	while (s->n_notes && s->notes[0].n <= through)
		mo_vec_remove(&note_desc, s->notes, &s->n_notes, 0);
}

void step_report_fill(const struct swarm_step *s, bool progress, struct step_report *ret)
{
	mo_desc_init(&step_report_desc, ret);
	ret->job = s->job;
	ret->attempt = s->attempt;
	ret->state = s->state;
	ret->written = s->written;
	ret->notes = s->notes;
	ret->n_notes = s->n_notes;
	if (!progress || s->state != STEP_RUNNING)
		return;
	ret->progress = mo_alloc_array((size_t)s->n_ranks, sizeof(*ret->progress));
	ret->n_progress = (size_t)s->n_ranks;
	for (int64_t i = 0; i < s->n_ranks; i++) {
		mo_desc_init(&rank_progress_desc, &ret->progress[i]);
		ret->progress[i].rank = s->first_rank + i;
		ret->progress[i].iteration = s->iteration;
		ret->progress[i].step_ms = 1000;
		ret->progress[i].phase = PHASE_TRAIN;
	}
}
