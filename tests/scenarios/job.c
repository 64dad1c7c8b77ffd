/* See scenarios.h: a job that is well imports, loads, compiles, steps, saves, evaluates and ends,
 * in each of its attempts; its first one is in the cell's phase for as long as such phases take. */
#include "tests/scenarios/scenarios.h"

#include <signal.h>
#include <stdlib.h>

#define NEVER (INT64_MAX / 4)
#define COARSE (20 * S)
#define SETTLED (45 * S)     /* so long each second counts after something happened */
#define RESTS (9 * 3600 * S) /* longer than any limit that is documented */

const struct job *play_job(const struct play *p)
{
	return world_job(&p->w, p->id);
}

static void found(struct play *p, int64_t iteration)
{
	struct found_checkpoint *f = NULL;

	for (size_t i = 0; i < p->w.scan.n_items; i++)
		if (p->w.scan.items[i].iteration == iteration)
			f = &p->w.scan.items[i];
	if (!f) {
		world_found(&p->w, iteration, true);
		f = &p->w.scan.items[p->w.scan.n_items - 1];
	}
	free(f->manifest);
	f->manifest = mo_printf("m%lld-%lld", (long long)iteration, (long long)p->attempt);
	f->complete = true;
	mo_str_set(&f->reason, NULL);
}

int64_t play_newest(const struct play *p)
{
	int64_t newest = MO_NONE;

	for (size_t i = 0; !p->w.scan.error && i < p->w.scan.n_items; i++)
		if (p->w.scan.items[i].complete)
			newest = MO_MAX(newest, p->w.scan.items[i].iteration);
	return newest;
}

bool play_lives(const struct play *p, size_t toy)
{
	const struct toy_step *s = world_toy_step((struct world *)&p->w, toy, p->id);

	return s && !s->gone && s->attempt == p->attempt;
}

static size_t toy_of(const struct play *p, size_t place)
{
	const struct job *j = play_job(p);

	for (size_t i = 0; i < NODES; i++)
		if (place < j->run.n_places &&
		    mo_streq(p->w.toys[i].name, j->run.places[place].node))
			return i;
	return 0;
}

void play_ends(struct play *p, int64_t rank, int64_t code, int64_t signal, const char *cause,
	       const char *words)
{
	size_t toy = p->on[rank / LOCAL];
	struct toy_step *s = world_toy_step(&p->w, toy, p->id);

	if (!play_lives(p, toy))
		return;
	p->over = true;
	world_exit(&p->w, toy, p->id, rank, code, signal);
	for (size_t i = 0; i < s->n_notes; i++) {
		struct note *n = &s->notes[i];

		if (n->kind != NOTE_EXIT || n->rank != rank)
			continue;
		if (cause)
			mo_str_set(&n->cause, cause);
		mo_str_set(&n->tail[0], words ? words : "");
	}
}

/* ---- what it does ---- */

static struct note *says(struct play *p, int kind)
{
	return world_note(&p->w, p->on[0], p->id, kind);
}

static void says_phase(struct play *p, int phase)
{
	says(p, NOTE_PHASE)->phase = phase;
}

/* In the cell's phase, in the attempt in which it happens. */
static bool here(const struct play *p, int at)
{
	return p->at == at && !p->hurt && (at == AT_RESUMING ? p->attempt == 2 : p->attempt == 1);
}

static void does(struct play *p, int doing, int64_t us)
{
	p->doing = doing;
	p->until = p->w.now + us;
	p->changed_at = p->w.now;
}

static struct rank_progress progress_of(const struct play *p, int64_t r)
{
	bool odd = p->slow && r == p->rank;

	return (struct rank_progress){ .rank = r,
				       .iteration =
					       p->lies && r == p->rank ? 1000000 : p->iteration,
				       .step_ms = p->slow ? 1500 : 1000,
				       .busy_ms =
					       odd ? 1490 : 800 + (double)((p->iteration + r) % 7),
				       .phase = PHASE_TRAIN };
}

static void iterates(struct play *p)
{
	struct toy_step *s = world_toy_step(&p->w, p->on[0], p->id);

	world_iteration(&p->w, p->on[0], p->id, ++p->iteration);
	if (p->loss != MO_NONE_F)
		s->notes[s->n_notes - 1].sample->loss = p->loss;
	for (int64_t r = 0; r < 2 * LOCAL; r++) {
		struct toy *t = &p->w.toys[p->on[r / LOCAL]];

		t->n_progress = LOCAL;
		t->progress[r % LOCAL] = progress_of(p, r);
	}
}

/* After an iteration, a save or an evaluation: what comes next. */
static void next(struct play *p)
{
	if (p->iteration >= p->steps) {
		does(p, DO_FINISH, here(p, AT_FINISHING) ? 2 * MINUTE : 5 * S);
		return;
	}
	does(p, DO_STEP, p->slow ? S * 3 / 2 : S);
}

static void saved(struct play *p)
{
	struct note *n = says(p, NOTE_CHECKPOINT);

	n->iteration = p->saving;
	n->path = mo_printf("/ckpt/%lld", (long long)p->saving);
	found(p, p->saving);
	p->saving = 0;
	if (p->rotten == p->iteration)
		p->rotten = 0; /* written again */
}

static void stepped(struct play *p)
{
	iterates(p);
	if (p->iteration % EVERY == 0) {
		p->saving = p->iteration;
		says(p, NOTE_SAVING)->iteration = p->iteration;
		does(p, DO_SAVE, here(p, AT_SAVING) && p->iteration == 30 ? 30 * MINUTE : 5 * S);
	} else if (p->iteration == EVAL_AT) {
		says_phase(p, PHASE_EVAL);
		does(p, DO_EVAL, here(p, AT_EVALUATING) ? 60 * MINUTE : MINUTE);
	} else {
		next(p);
	}
}

static void finished(struct play *p)
{
	for (int64_t r = 0; r < 2 * LOCAL; r++)
		play_ends(p, r, 0, 0, NULL, NULL);
}

static void goes_on(struct play *p)
{
	switch (p->doing) {
	case DO_IMPORT:
		says_phase(p, PHASE_LOAD);
		does(p, DO_LOAD,
		     here(p, AT_LOADING) || here(p, AT_RESUMING) ? 20 * MINUTE : 10 * S);
		break;
	case DO_LOAD:
		if (p->rotten && p->iteration == p->rotten) {
			play_ends(p, 0, 0, SIGSEGV, NULL, "");
			break;
		}
		says_phase(p, PHASE_TRAIN);
		does(p, DO_FIRST, here(p, AT_FIRST) ? 20 * MINUTE : 30 * S);
		break;
	case DO_FIRST:
	case DO_STEP: stepped(p); break;
	case DO_SAVE:
		saved(p);
		next(p);
		break;
	case DO_EVAL:
		says_phase(p, PHASE_TRAIN);
		next(p);
		break;
	case DO_FINISH: finished(p); break;
	default: break;
	}
}

/* A new attempt, once its ranks live on all of its nodes. */
static void follow(struct play *p)
{
	const struct job *j = play_job(p);

	if (j->run.n_places == 0 || j->attempt == p->attempt)
		return;
	for (size_t place = 0; place < j->run.n_places; place++) {
		const struct toy_step *s = world_toy_step(&p->w, toy_of(p, place), p->id);

		if (!s || s->gone || s->attempt != j->attempt)
			return;
	}
	p->attempt = j->attempt;
	p->on[0] = toy_of(p, 0);
	p->on[1] = toy_of(p, 1);
	p->iteration = MO_MAX(j->run.resume, 0);
	p->saving = 0;
	p->over = p->stuck = false;
	says_phase(p, PHASE_INIT);
	does(p, DO_IMPORT, here(p, AT_IMPORTING) ? 14 * MINUTE : 20 * S);
}

/* ---- the cell's moment ---- */

/* In long silences nobody beats each second, and nobody is silent for that. */
int64_t play_pace(struct play *p)
{
	bool calm = p->w.now - p->changed_at > SETTLED;
	struct core_config *c = &p->w.core->config;

	c->suspect_us = calm ? NEVER : core_config_default.suspect_us;
	c->down_us = calm ? NEVER : core_config_default.down_us;
	c->beat_us = calm ? COARSE : core_config_default.beat_us;
	c->powers_off = true;
	if (!calm)
		return S;
	return p->until > p->w.now ? MO_MIN(COARSE, p->until - p->w.now) : COARSE;
}

static bool is_moment(const struct play *p)
{
	static const int doing[_AT_N] = {
		[AT_IMPORTING] = DO_IMPORT, [AT_LOADING] = DO_LOAD,
		[AT_FIRST] = DO_FIRST,      [AT_STEPPING] = DO_STEP,
		[AT_SAVING] = DO_SAVE,      [AT_EVALUATING] = DO_EVAL,
		[AT_FINISHING] = DO_FINISH, [AT_BACKING_OFF] = DO_NOTHING,
		[AT_RESUMING] = DO_LOAD,
	};
	const struct job *j = play_job(p);
	int64_t left = p->until - p->w.now;

	if (p->at == AT_QUEUED)
		return j->state == JOB_QUEUED;
	if (p->at == AT_LAUNCHING)
		return j->state == JOB_STARTING;
	if (p->at == AT_BACKING_OFF)
		return j->attempt == 3 && j->state == JOB_RECOVERING && j->run.n_places == 0;
	if (p->doing != doing[p->at] || p->over || (p->at == AT_RESUMING) != (p->attempt == 2))
		return false;
	if (p->at == AT_STEPPING)
		return p->iteration == (p->kind == K_STRAGGLER ? 200 : 45);
	if (p->at == AT_SAVING && p->iteration != 30)
		return false;
	/* in the midst of it */
	return left <= (p->at == AT_FINISHING ? MINUTE : 7 * MINUTE);
}

/* What goes before it in some phases. */
static void prepare(struct play *p)
{
	const struct job *j = play_job(p);

	if (p->hurt)
		return;
	if (p->at == AT_RESUMING && p->attempt == 1 && p->iteration == 25)
		play_ends(p, 3, 0, SIGKILL, NULL, "");
	if (p->at == AT_BACKING_OFF && !p->over && p->attempt == j->attempt &&
	    (p->attempt == 1 ? p->iteration == 25 : p->attempt <= 3 && p->doing == DO_IMPORT))
		play_ends(p, 3, 0, SIGKILL, NULL, "");
}

static void happens(struct play *p)
{
	const struct job *j = play_job(p);

	p->hurt = true;
	p->hurt_at = p->changed_at = p->w.now;
	p->attempt_before = j->attempt;
	p->n_before = j->n_incidents;
	p->node = p->at == AT_QUEUED ? 0 : toy_of(p, 1);
	p->rank = 3;
	play_pace(p);
	kind_happens(p);
	p->newest_before = play_newest(p);
	if (p->at == AT_QUEUED)
		for (size_t i = 1; i < NODES; i++)
			world_node_verb(&p->w, IN_UNDRAIN, i, NULL);
	p->w.no_launch = false;
}

/* ---- its time ---- */

static void changes(struct play *p)
{
	const struct job *j = play_job(p);
	size_t seen = (size_t)j->attempt * 1000000 + (size_t)j->state * 10000 +
		      (size_t)MO_MAX(j->progress.iteration, 0);

	if (seen != p->n_seen)
		p->changed_at = p->w.now;
	p->n_seen = seen;
}

static void turn(struct play *p)
{
	int64_t us;

	follow(p);
	p->over |= p->attempt && !(play_lives(p, p->on[0]) && play_lives(p, p->on[1]));
	if (!p->over && !p->stuck && p->doing && p->until <= p->w.now &&
	    p->asleep_until <= p->w.now)
		goes_on(p);
	prepare(p);
	if (!p->hurt && is_moment(p))
		happens(p);
	if (p->hurt)
		kind_goes_on(p);
	kind_moves(p);
	us = play_pace(p);
	p->w.n_verified = 0;
	for (size_t i = 0; i < NODES && !p->absent; i++)
		if (!p->w.toys[i].deaf)
			world_beat(&p->w, i);
	if (p->absent)
		p->w.now += us;
	else
		world_tick(&p->w, us);
	changes(p);
}

static void submit(struct play *p)
{
	struct submit spec;

	world_recipe(&spec, 2 * LOCAL);
	spec.recipe.steps = p->steps;
	spec.recipe.hang = mo_strdup("auto");
	spec.recipe.backoff_us = 300 * S;
	spec.recipe.lease_us = 30 * S;
	spec.recipe.on_node_loss = mo_strdup(p->kind == K_CUT_SPARE ? "spare" : "wait");
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.every = EVERY;
	spec.recipe.loss_action = mo_strdup("rollback");
	spec.engine.layout.announced_is_complete = true;
	mo_strs_add(&spec.engine.resume, &spec.engine.n_resume, "--load={dir}/{iteration}");
	mo_strs_add(&spec.engine.fresh, &spec.engine.n_fresh, "--fresh");
	p->id = world_submit(&p->w, &spec);
	assert_int_equal(p->id, 1);
	mo_desc_done(&submit_desc, &spec);
}

void play_begin(struct play *p, int kind, int at)
{
	*p = (struct play){ .kind = kind, .at = at, .loss = MO_NONE_F, .newest_before = MO_NONE };
	p->steps = kind == K_STRAGGLER ? 400 : kind == K_NAN || kind == K_SPIKE ? 3 * STEPS : STEPS;
	world_init_telling(&p->w, NODES, LOCAL);
	p->w.verify = true;
	/* unit tests replay each turn; here a shadow is who comes after the controller's end */
	p->w.unwatched = kind != K_STATE_DISK;
	for (size_t i = 0; i < NODES; i++)
		p->w.toys[i].tells_motion = true;
	found(p, FOUND / 2);
	found(p, FOUND);
	for (size_t i = 1; at == AT_QUEUED && i < NODES; i++)
		world_node_verb(&p->w, IN_DRAIN, i, "idle");
	p->w.no_launch = at == AT_LAUNCHING;
	submit(p);
}

void play_run(struct play *p)
{
	while (!job_state_final(play_job(p)->state) && p->w.now - p->changed_at < RESTS)
		turn(p);
	if (!p->hurt)
		fail_msg("the cell's moment never came: attempt %lld, iteration %lld",
			 (long long)play_job(p)->attempt, (long long)p->iteration);
}
