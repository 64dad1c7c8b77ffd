/* One job that saves to /ckpt, for tests of what becomes of its checkpoints. */
#include "tests/unit/dcore/saver.h"

#include <signal.h>

static void recipe_of(struct submit *ret, int64_t resume, int64_t keep, bool announces,
		      const char *saved)
{
	world_recipe(ret, 2);
	ret->recipe.checkpoint.dir = mo_strdup("/ckpt");
	ret->recipe.checkpoint.resume = resume;
	ret->recipe.checkpoint.keep = keep;
	ret->recipe.parallelism.tp = ret->recipe.parallelism.pp = ret->recipe.parallelism.ep = 1;
	ret->recipe.hang = mo_strdup("off"); /* of now, and saves alone are asked for */
	mo_strs_add(&ret->engine.resume, &ret->engine.n_resume, "--load={dir}/{iteration}");
	mo_strs_add(&ret->engine.fresh, &ret->engine.n_fresh, "--fresh");
	ret->engine.layout.announced_is_complete = announces;
	if (saved) {
		struct line_rule *rule = MO_ADD(&ret->engine, rules, &line_rule_desc);

		rule->kind = LINE_SAVED;
		rule->pattern = mo_strdup(saved);
	}
}

static void begin_on(struct saver *o, struct submit *spec, size_t nodes)
{
	world_init(&o->w, nodes, 2);
	o->id = world_submit(&o->w, spec);
	mo_desc_done(&submit_desc, spec);
}

static void begin(struct saver *o, struct submit *spec)
{
	begin_on(o, spec, 1);
}

static void submit(struct saver *o, int64_t resume, int64_t keep, bool announces, const char *saved)
{
	struct submit spec;

	recipe_of(&spec, resume, keep, announces, saved);
	begin(o, &spec);
}

int saver_setup(void **state)
{
	struct saver *o = *state = mo_alloc(sizeof(*o));

	submit(o, -1, 0, true, NULL);
	return 0;
}

int saver_teardown(void **state)
{
	struct saver *o = *state;

	world_done(&o->w);
	free(o);
	return 0;
}

void saver_on(struct saver *o, size_t nodes)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, true, NULL);
	begin_on(o, &spec, nodes);
}

void saver_again(struct saver *o, int64_t resume, int64_t keep)
{
	world_done(&o->w);
	submit(o, resume, keep, true, NULL);
	o->w.verify = keep > 0; /* what is being verified is not removed */
}

void saver_steps(struct saver *o, int64_t steps, int64_t every, int64_t keep)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, keep, true, NULL);
	spec.recipe.steps = steps;
	spec.recipe.checkpoint.every = every;
	begin(o, &spec);
	o->w.verify = true;
}

void saver_marked(struct saver *o)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, true, NULL);
	mo_strs_add(&spec.engine.layout.markers, &spec.engine.layout.n_markers, "COMPLETE");
	begin(o, &spec);
}

void saver_compares(struct saver *o, const char *level, size_t nodes)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, false, NULL);
	mo_str_set(&spec.recipe.checkpoint.verify, level);
	begin_on(o, &spec, nodes);
	o->w.verify = true;
}

void saver_compares_in_parts(struct saver *o, const char *level)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, false, NULL);
	spec.recipe.gpus = 4;
	mo_str_set(&spec.recipe.checkpoint.verify, level);
	begin_on(o, &spec, 2);
	o->w.verify = true;
}

void saver_limited(struct saver *o, int64_t limit_us)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, true, NULL);
	spec.recipe.time_limit_us = limit_us;
	begin(o, &spec);
}

void saver_strict(struct saver *o)
{
	world_done(&o->w);
	submit(o, -1, 0, false, NULL);
}

void saver_tells_end(struct saver *o)
{
	world_done(&o->w);
	submit(o, -1, 0, false, "saved to (?<path>/.*)");
}

void saver_losses(struct saver *o, const char *action, double factor, int64_t max)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, true, NULL);
	mo_str_set(&spec.recipe.loss_action, action);
	spec.recipe.loss_factor = factor;
	spec.recipe.max_rollbacks = max;
	begin(o, &spec);
}

void saver_skips(struct saver *o, int64_t n, const char *word)
{
	struct submit spec;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, true, NULL);
	spec.recipe.skips = n;
	mo_strs_add(&spec.engine.skip, &spec.engine.n_skip, "--skip");
	mo_strs_add(&spec.engine.skip, &spec.engine.n_skip, word);
	begin(o, &spec);
}

void saver_leaves_nan_out(struct saver *o)
{
	struct submit spec;
	struct line_rule *rule;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, true, NULL);
	rule = MO_ADD(&spec.engine, rules, &line_rule_desc);
	rule->kind = LINE_SAMPLE;
	rule->missing_loss_is_nan = true;
	begin(o, &spec);
}

void saver_in_image(struct saver *o)
{
	struct submit spec;
	struct container_mount *m;

	world_done(&o->w);
	recipe_of(&spec, -1, 0, true, NULL);
	mo_str_set(&spec.recipe.checkpoint.dir, "/work/c");
	spec.recipe.engine.container = mo_desc_new(&recipe_container_desc);
	spec.recipe.engine.container->image = mo_strdup("dir:/image");
	m = MO_ADD(spec.recipe.engine.container, mounts, &container_mount_desc);
	m->source = mo_strdup("/ckpt");
	m->target = mo_strdup("/work/c");
	begin(o, &spec);
	o->w.toys[0].images = true;
	world_hello(&o->w, 0);
}

const struct job *saver_job(const struct saver *o)
{
	return world_job(&o->w, o->id);
}

int saver_state(const struct saver *o, int64_t iteration)
{
	return checkpoint_find(saver_job(o), iteration)->state;
}

void saver_run(struct saver *o, int64_t seconds)
{
	world_run(&o->w, seconds * S);
}

void saver_save(struct saver *o, int64_t iteration)
{
	struct note *n;

	world_iteration(&o->w, 0, o->id, iteration);
	n = world_note(&o->w, 0, o->id, NOTE_SAVING);
	n->iteration = iteration;
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(&o->w, iteration, true);
	saver_run(o, 1);
}

void saver_crash(struct saver *o)
{
	world_exit(&o->w, 0, o->id, 0, 0, SIGKILL);
	saver_run(o, 3);
}

int saver_restart(struct saver *o, int64_t iteration)
{
	world_step(&o->w,
		   &(struct core_input){ .type = IN_RESTART,
					 .by.user = (char *)"ann",
					 .restart = &(struct in_restart){
						 .job = o->id, .from_iteration = iteration } });
	return o->w.reply_status;
}

void saver_resumed(const struct saver *o, int64_t attempt, int64_t resume)
{
	assert_int_equal(saver_job(o)->counts.started, saver_job(o)->run.n_places);
	assert_int_equal(saver_job(o)->attempt, attempt);
	assert_int_equal(saver_job(o)->run.resume, resume);
}
