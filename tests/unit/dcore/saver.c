/* One job that saves to /ckpt, for tests of what becomes of its checkpoints. */
#include "tests/unit/dcore/saver.h"

#include <signal.h>

static void submit(struct saver *o, int64_t resume, int64_t keep, bool announces, const char *saved)
{
	struct submit spec;

	world_init(&o->w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = resume;
	spec.recipe.checkpoint.keep = keep;
	spec.recipe.parallelism.tp = spec.recipe.parallelism.pp = spec.recipe.parallelism.ep = 1;
	mo_strs_add(&spec.engine.resume, &spec.engine.n_resume, "--load={dir}/{iteration}");
	mo_strs_add(&spec.engine.fresh, &spec.engine.n_fresh, "--fresh");
	spec.engine.layout.announced_is_complete = announces;
	if (saved) {
		struct line_rule *rule = MO_ADD(&spec.engine, rules, &line_rule_desc);

		rule->kind = LINE_SAVED;
		rule->pattern = mo_strdup(saved);
	}
	o->id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
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

void saver_again(struct saver *o, int64_t resume, int64_t keep)
{
	world_done(&o->w);
	submit(o, resume, keep, true, NULL);
	o->w.verify = keep > 0; /* what is being verified is not removed */
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
	assert_int_equal(saver_job(o)->counts.started, 1);
	assert_int_equal(saver_job(o)->attempt, attempt);
	assert_int_equal(saver_job(o)->run.resume, resume);
}
