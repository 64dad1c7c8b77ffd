/* What the ranks do in truth: an attempt iterates while all its ranks live, saves checkpoints to
 * the shared file system, ends with exit 0; a dead rank stops everybody, and some die after it. */
#include "agent/core/stepd/spool.h"
#include "tests/sim/sim.h"

#include <math.h>
#include <stdlib.h>

#include "daemon/core/state/numbers.h"

/* It falls slowly, with noise. */
double train_loss(const struct attempt *a, int64_t iteration)
{
	if (a->broken_from && iteration >= a->broken_from)
		return NAN;
	if (iteration >= a->odd_from && iteration <= a->odd_until)
		return a->odd_loss;
	return 2 + 1.0 / (double)(iteration + 1) + (double)(iteration * 7919 % 21) / 1000;
}

static void say(struct sim *s, struct attempt *a, int64_t rank, int type, int64_t iteration,
		int phase)
{
	struct stepd_event e;

	if (!a->ranks[rank] || !a->ranks[rank]->alive)
		return;
	stepd_event_init(&e, type);
	e.note.rank = rank;
	e.note.iteration = iteration;
	e.note.phase = phase;
	if (type == SE_SAMPLE) {
		e.note.iteration = MO_NONE;
		e.note.sample = mo_desc_new(&sample_desc);
		e.note.sample->iteration = iteration;
		e.note.sample->loss = train_loss(a, iteration);
		e.note.sample->step_ms = (double)a->took_us / 1000.0;
	}
	stepd_event(s, a->ranks[rank]->step, &e);
	mo_desc_done(&note_desc, &e.note);
}

static struct attempt *attempt_of(struct sim *s, struct proc *p)
{
	struct truth *t = sim_job(s, p->step->job);
	struct attempt *a = sim_attempt(s, p->step->job, p->step->attempt);
	const struct launch *l = &p->step->launch;
	const struct job *j = job_find(core_state(s->ctl.shadow), p->step->job);

	if (a)
		return a;
	a = mo_alloc(sizeof(*a));
	if (t->step_us == 0) {
		engine_draw(s, &t->engine);
		t->step_us = sim_between(s, 200 * MS, 1000 * MS);
		t->length = sim_chance(s, l->steps == MO_NONE ? 0.4 : 0.06)
				    ? 0
				    : sim_between(s, 15, 80);
	}
	*a = (struct attempt){ .job = p->step->job,
			       .number = p->step->attempt,
			       .world = l->world,
			       .steps = l->steps,
			       .resume = l->resume,
			       .step_us = t->step_us,
			       .engine = &t->engine,
			       .in_hands = 1,
			       /* ordered by a controller that is lost: who came back keeps none
				* of its samples */
			       .cut = !j || j->attempt < p->step->attempt };
	a->iteration = MO_MAX(l->resume, 0);
	a->every = l->checkpoint_dir ? 10 + a->job % 7 : 0;
	/* 0: a program that ends at once */
	a->length = l->steps != MO_NONE && t->length ? l->steps : t->length;
	a->ranks = mo_alloc_array((size_t)a->world, sizeof(*a->ranks));
	a->paces = mo_alloc_array((size_t)a->world, sizeof(*a->paces));
	t->now = a;
	*MO_GROW(s->attempts, s->n_attempts) = a;
	return a;
}

static void end_all(struct sim *s, struct attempt *a)
{
	a->ending = true;
	for (int64_t r = 0; r < a->world; r++)
		sim_at(s, s->now + (a->length ? sim_between(s, 100 * MS, 2 * S) : 100), K_EXIT, r,
		       0, a, NULL);
}

/* All wait for the slowest. wait_us: before they begin. */
static void step_begin(struct sim *s, struct attempt *a, int64_t wait_us)
{
	int64_t step_us = a->step_us;
	bool any = false;

	for (int64_t r = 0; r < a->world; r++) {
		const struct proc *p = a->ranks[r];

		a->paces[r].slow_now = s->nodes[p->step->node].slow_until[p->gpu] > s->now;
		a->paces[r].slow |= a->paces[r].slow_now;
		any |= a->paces[r].slow_now;
	}
	/* both at once are a hang by every limit that is documented */
	step_us = (int64_t)((double)step_us * engine_step(s, !any));
	a->took_us = 0;
	for (int64_t r = 0; r < a->world; r++) {
		const struct proc *p = a->ranks[r];
		int64_t pct = a->paces[r].slow_now ? s->nodes[p->step->node].slow_pct[p->gpu] : 100;

		a->paces[r].own_us = step_us * pct / 100 * sim_between(s, 97, 105) / 100;
		a->took_us = MO_MAX(a->took_us, a->paces[r].own_us);
	}
	sim_at(s, s->now + wait_us + a->took_us, K_ITERATE, a->iteration + 1, 0, a, NULL);
}

static void say_all(struct sim *s, struct attempt *a, int phase)
{
	for (int64_t r = 0; r < a->world; r++)
		say(s, a, r, SE_PHASE, MO_NONE, phase);
}

/* Whoever loads a rotten one dies of it. */
static bool loads(struct sim *s, struct attempt *a)
{
	const struct file *f = a->resume >= 0 ? train_file(s, a->job, a->resume) : NULL;

	if (a->resume >= 0)
		say_all(s, a, PHASE_LOAD);
	if (f && f->broken)
		a->broken_from = a->resume + 1;
	if (f && (f->broken || f->rotten))
		sim_harm(s, a->job, a->number);
	if (f && f->rotten)
		sim_at(s, s->now + sim_between(s, 300 * MS, 2 * S), K_EXIT, 0, 1, a, NULL);
	return !f || !f->rotten;
}

void train_phase(struct sim *s, struct attempt *a, int phase)
{
	if (!train_runs(a))
		return;
	if (a->stands_until > s->now) {
		sim_at(s, a->stands_until, K_PHASE, phase, 0, a, NULL);
		return;
	}
	if (phase == PHASE_LOAD) {
		if (loads(s, a))
			sim_at(s, s->now + engine_load(s, a), K_PHASE, PHASE_TRAIN, 0, a, NULL);
		return;
	}
	say_all(s, a, PHASE_TRAIN);
	step_begin(s, a, a->compiled ? 0 : engine_compile(s, a));
	a->act = a->compiled && a->engine->steps_asleep ? ACT_SLEEP : ACT_COMPUTE;
	a->compiled = true;
}

void train_started(struct sim *s, struct proc *p)
{
	struct attempt *a = attempt_of(s, p);

	a->ranks[p->rank] = p;
	a->n_started++;
	a->n_alive++;
	if (a->n_started < a->world || a->n_alive < a->world)
		return;
	if (a->length == 0) {
		end_all(s, a);
		return;
	}
	say_all(s, a, PHASE_INIT);
	a->training = true;
	a->one = a->engine->one_starts;
	sim_at(s, s->now + engine_start(s, a), K_PHASE, PHASE_LOAD, 0, a, NULL);
}

void train_ended(struct sim *s, struct proc *p)
{
	struct attempt *a = sim_attempt(s, p->step->job, p->step->attempt);

	if (!a)
		return;
	/* not the one with which its supervisor died before its first note: it is forked again */
	a->n_alive -= a->ranks[p->rank] == p;
	if (p->code == 0 && !p->step->outside_at)
		return;
	if (!a->broken_at)
		a->broken_at = s->now;
	if (a->n_alive == a->world - 1)
		/* "connection closed by peer", or they hang until they are killed */
		for (int64_t r = 0; r < a->world; r++)
			if (a->ranks[r] && a->ranks[r]->alive && sim_chance(s, 0.5))
				sim_at(s, s->now + sim_between(s, 20 * MS, 3 * S), K_EXIT, r, 1, a,
				       NULL);
}

static void save(struct sim *s, struct attempt *a)
{
	struct truth *t = sim_job(s, a->job);
	struct file *f = train_file(s, a->job, a->iteration);

	if (!f)
		f = MO_GROW(t->files, t->n_files);
	*f = (struct file){ .iteration = a->iteration,
			    .changed_at = s->now,
			    .stamp = ++s->stamps * 2,
			    .by = a->number,
			    .told = MO_NONE,
			    .broken = a->broken_from && a->iteration >= a->broken_from - 1,
			    .odd = a->odd_until && a->iteration >= a->odd_from - 1 &&
				   a->iteration <= a->odd_until };
	a->saving = a->iteration;
	if (a->engine->saves != SAVES_UNSAID)
		say(s, a, 0, SE_SAVING, a->iteration, PHASE_NONE);
	sim_at(s, s->now + engine_save(s, a), K_SAVED, a->iteration, 0, a, NULL);
}

/* What is saved beside the steps is awaited at the end. */
static void next(struct sim *s, struct attempt *a)
{
	int64_t every = a->engine->eval_every;

	if (a->iteration >= a->length && a->saving)
		return;
	if (a->iteration >= a->length) {
		end_all(s, a);
		return;
	}
	if (every && a->iteration % every == 0 && a->evaluated != a->iteration) {
		a->evaluated = a->iteration;
		if (!a->engine->eval_unsaid)
			say_all(s, a, PHASE_EVAL);
		sim_at(s, s->now + engine_evaluation(s, a), K_PHASE, PHASE_TRAIN, 0, a, NULL);
		return;
	}
	a->act = a->engine->steps_asleep ? ACT_SLEEP : ACT_COMPUTE;
	step_begin(s, a, 0);
}

/* A killed process that the kernel holds never runs user code again. */
static bool runs(const struct attempt *a)
{
	for (int64_t r = 0; r < a->world; r++)
		if (!a->ranks[r] || !a->ranks[r]->alive || a->ranks[r]->stuck ||
		    a->ranks[r]->frozen)
			return false;
	return !a->ending;
}

bool train_runs(const struct attempt *a)
{
	return a->training && runs(a);
}

/* What a job's program says of its steps: how long they took, that and how long the rank was busy,
 * or how long it took itself. */
bool train_tells(const struct attempt *a)
{
	return a->job % 3 != 0;
}

static void progress(struct sim *s, const struct attempt *a, int64_t rank)
{
	struct simstep *st = a->ranks[rank]->step;
	double took = (double)a->took_us / 1000.0, own = (double)a->paces[rank].own_us / 1000.0;
	struct rank_progress p = { .rank = rank,
				   .iteration = a->iteration,
				   .step_ms = a->job % 3 == 2 ? own : took,
				   .phase = PHASE_TRAIN,
				   .busy_ms = a->job % 3 == 1 ? own : MO_NONE_F };
	struct stepd_word w;

	if (!st->stepd || st->hung)
		return;
	mo_desc_init(&stepd_word_desc, &w);
	w.progress = &p;
	w.n_progress = 1;
	line_say(s, st, &w);
}

/* What was saved behind the last good loss is no better, as far as anybody can tell. */
static void doubt_saved(struct sim *s, const struct attempt *a)
{
	struct file *f = train_file(s, a->job, a->iteration);

	if (f)
		f->odd = true;
}

/* The step at hand breaks its weights: of what is saved from now on the loss is no number. */
void train_break(struct sim *s, struct attempt *a)
{
	a->broken_from = a->iteration + 1;
	doubt_saved(s, a);
	sim_harm(s, a->job, a->number);
}

void train_odd(struct sim *s, struct attempt *a, double loss, int64_t steps)
{
	a->odd_from = a->iteration + 1;
	a->odd_until = a->iteration + steps;
	a->odd_loss = loss;
	doubt_saved(s, a);
	if (steps >= NUMBERS_SPIKE_STAYS)
		sim_harm(s, a->job, a->number);
}

void train_iterate(struct sim *s, struct attempt *a, int64_t iteration)
{
	if (!runs(a) || iteration != a->iteration + 1)
		return;
	if (a->stands_until > s->now) {
		sim_at(s, a->stands_until, K_ITERATE, iteration, 0, a, NULL);
		return;
	}
	a->iteration = iteration;
	if (sim_job(s, a->job)->breaks_at == iteration && !a->broken_from) {
		s->fault_counts[F_LOSS_OF_DATA]++;
		train_break(s, a);
	}
	for (int64_t r = 0; r < a->world; r++) {
		say(s, a, r, SE_SAMPLE, iteration, PHASE_NONE);
		progress(s, a, r);
	}
	a->one = false;
	if (a->every && iteration % a->every == 0 && !a->saving) {
		save(s, a);
		if (a->engine->saves != SAVES_ASIDE)
			return;
	}
	next(s, a);
}

void train_saved(struct sim *s, struct attempt *a, int64_t iteration)
{
	struct file *f = train_file(s, a->job, iteration);

	/* it stays half written */
	if (!runs(a) || a->saving != iteration)
		return;
	a->saving = 0;
	f->complete = true;
	f->changed_at = s->now;
	say(s, a, 0, SE_CHECKPOINT, iteration, PHASE_NONE);
	if (a->engine->saves != SAVES_ASIDE || a->iteration >= a->length)
		next(s, a);
}

void train_exit(struct sim *s, struct attempt *a, int64_t rank, int64_t code)
{
	if (a && a->ranks[rank] && a->ranks[rank]->alive && !a->ranks[rank]->stuck &&
	    !a->ranks[rank]->frozen)
		proc_end(s, a->ranks[rank], code, MO_NONE);
}
