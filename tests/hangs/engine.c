/* What a job does in an attempt: it starts, loads, makes steps, saves, evaluates, pauses, ends, or
 * is stuck somewhere. */
#include "tests/hangs/hangs.h"
#include "tests/hangs/recorded.h"

#include <math.h>

enum stage { STAGE_INIT, STAGE_LOADED, STAGE_STEPS, STAGE_LAST_SAVE, STAGE_END };

uint64_t draw(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

double draw_real(uint64_t *rng, double low, double high)
{
	return low + (high - low) * (double)(draw(rng) >> 11) / 9007199254740992.0;
}

double draw_wide(uint64_t *rng, double low, double high)
{
	return exp(draw_real(rng, log(low), log(high)));
}

void course_begin(struct course *c, const struct scenario *s, uint64_t *rng, int64_t attempt,
		  int64_t resume)
{
	*c = (struct course){ .scenario = s,
			      .rng = rng,
			      .attempt = attempt,
			      .iteration = resume,
			      .resumed = resume };
}

static struct stretch all(double seconds, int act, int said, int gpu)
{
	return (struct stretch){ seconds, act, act, -1, said, gpu, gpu };
}

static struct stretch moment(int said)
{
	return all(0, ACT_COMPUTE, said, GPU_RESTS);
}

static struct stretch stuck(struct course *c)
{
	const struct scenario *s = c->scenario;

	c->hung = true;
	return (struct stretch){ 0,
				 s->stuck_act,
				 s->stuck_others,
				 s->stuck_odd,
				 SAID_FOR_EVER,
				 s->stuck_gpu,
				 s->stuck_gpus };
}

static bool gets_stuck(const struct course *c, int phase)
{
	return c->scenario->stuck_in == phase && c->attempt == 1;
}

static double step_seconds(struct course *c)
{
	const struct scenario *s = c->scenario;
	double done = (double)c->iteration / (double)s->steps,
	       ratio = recorded_body[draw(c->rng) % n_recorded_body];

	if (s->n_replay)
		return s->replay[(size_t)c->iteration % s->n_replay];
	if (draw_real(c->rng, 0, 1) < s->outlier_p)
		ratio = recorded_outliers[draw(c->rng) % n_recorded_outliers];
	if (s->slower > 1)
		ratio *= 1 + (s->slower - 1) * done;
	if (s->jump > 1 && done > 0.5)
		ratio *= s->jump;
	return s->step_s * ratio;
}

static struct stretch step(struct course *c)
{
	const struct scenario *s = c->scenario;
	struct stretch ret = all(step_seconds(c), s->engine.sleeps ? ACT_SLEEP : ACT_COMPUTE,
				 SAID_ITERATION, GPU_WORKS);

	if (c->iteration == c->resumed) {
		ret = all(ret.seconds + s->first_s, s->first_s ? s->first_act : ret.act,
			  SAID_ITERATION, GPU_RESTS);
		if (s->one_starts)
			ret.odd = 0, ret.others = ACT_SLEEP, ret.gpus = GPU_SPINS;
	}
	c->iteration++;
	c->saved = c->evaluated = c->paused = false;
	return ret;
}

static struct stretch pause_of(struct course *c)
{
	const struct scenario *s = c->scenario;
	struct stretch ret = all(s->pause_s * draw_real(c->rng, 0.7, 1), s->pause_act, SAID_NOTHING,
				 s->pause_gpu);

	c->paused = true;
	if (s->pause_one)
		ret.odd = (int)(draw(c->rng) % RANKS), ret.others = ACT_COMPUTE,
		ret.gpus = s->pause_gpus;
	return ret;
}

static bool due(const struct course *c, int64_t every)
{
	return every && c->iteration > c->resumed && c->iteration % every == 0;
}

/* At an iteration's end. */
static struct stretch in_steps(struct course *c)
{
	const struct scenario *s = c->scenario;

	if (gets_stuck(c, IN_FIRST) && c->iteration == 2)
		return stuck(c);
	if (gets_stuck(c, IN_STEPS) && c->iteration == s->steps / 2)
		return stuck(c);
	if (due(c, s->save_every) && !c->saved) {
		c->saved = true;
		c->stage = STAGE_STEPS + 10;
		return moment(s->save_unsaid ? SAID_NOTHING : SAID_SAVING);
	}
	if (s->save_aside && c->iteration % s->save_every == s->save_every / 2 && !c->saved &&
	    c->iteration > s->save_every) {
		c->saved = true;
		return moment(SAID_SAVED);
	}
	if (due(c, s->eval_every) && !c->evaluated) {
		c->evaluated = true;
		c->stage = STAGE_STEPS + 20;
		return moment(s->eval_unsaid ? SAID_NOTHING : SAID_EVAL);
	}
	if (due(c, s->pause_every) && !c->paused)
		return pause_of(c);
	if (s->restart_at && c->attempt == 1 && c->iteration == s->restart_at)
		return moment(SAID_DEATH);
	if (c->iteration >= s->steps) {
		c->stage = STAGE_LAST_SAVE;
		return moment(s->last_save_s ? SAID_SAVING : SAID_NOTHING);
	}
	return step(c);
}

struct stretch course_next(struct course *c)
{
	const struct scenario *s = c->scenario;
	struct stretch ret;

	switch (c->stage) {
	case STAGE_INIT:
		c->stage = STAGE_LOADED;
		if (gets_stuck(c, IN_INIT))
			return stuck(c);
		ret = all(s->init_s, s->init_act, SAID_LOAD, GPU_RESTS);
		if (s->one_starts)
			ret.odd = 0, ret.others = ACT_SLEEP;
		return ret;
	case STAGE_LOADED:
		c->stage = STAGE_STEPS;
		if (gets_stuck(c, IN_LOAD))
			return stuck(c);
		return all(s->load_s, s->load_act, SAID_NOTHING, GPU_RESTS);
	case STAGE_STEPS + 10:
		c->stage = STAGE_STEPS;
		if (gets_stuck(c, IN_SAVE))
			return stuck(c);
		if (s->save_aside)
			return moment(SAID_NOTHING);
		return all(s->save_s, s->save_act, SAID_SAVED, GPU_RESTS);
	case STAGE_STEPS + 20:
		c->stage = STAGE_STEPS;
		if (gets_stuck(c, IN_EVAL))
			return stuck(c);
		return all(s->eval_s, s->eval_act, SAID_NOTHING, s->eval_gpu);
	case STAGE_LAST_SAVE:
		c->stage = STAGE_END;
		if (gets_stuck(c, IN_END))
			return stuck(c);
		return all(s->last_save_s, s->save_act, s->last_save_s ? SAID_SAVED : SAID_NOTHING,
			   GPU_RESTS);
	case STAGE_END: return all(2, ACT_SLEEP, SAID_DONE, GPU_RESTS);
	default: return in_steps(c);
	}
}
