/* What the engine says of a draft: its file of flags read backwards, or its own configuration
 * (init_config.c). Called by init.c. */
#include "cli/init_engine.h"

#include <string.h>

#include "cli/init_config.h"
#include "cli/init_saves.h"
#include "lib/base/parse.h"
#include "lib/recipe/engine_version.h"
#include "lib/recipe/word_flags.h"

static void flags_folder(struct init *i, const struct engine *e)
{
	struct word_flags flags;

	word_flags_read(i->draft.args, i->draft.n_args, &flags);
	const struct word_flag *on = word_flags_find(&flags, "checkpoint.enable"),
			       *folder = word_flags_find(&flags, "checkpoint.folder"),
			       *dump = word_flags_find(&flags, "dump_folder");
	_cleanup_(mo_freep) char *dir =
		mo_strdup(dump && dump->n == 1 ? dump->values[0] : "outputs");
	if (on && !folder) {
		mo_strs_add(&i->draft.args, &i->draft.n_args, "--checkpoint.folder");
		mo_strs_add(&i->draft.args, &i->draft.n_args, "checkpoint");
	}
	word_flags_done(&flags);
	draft_values(&i->draft, e);
	init_saves_dir(i, dir);
	init_note(i, "what its configuration in Python says is not read: sizes that the line does "
		     "not name are 1 here, and every rank is told so");
}

/* What the engine takes for a value that the line leaves out, where that is not what a recipe's
 * is. */
static void say_untold(struct draft *d, const struct engine *e)
{
	const struct engine_checks *c = e->checks;

	for (size_t i = 0; c && i < c->n_untold; i++) {
		const char *path = c->untold[i].key, *value = c->untold[i].value;
		_cleanup_(mo_freep) char *other =
			*value == '{' ? mo_strndup(value + 1, strlen(value) - 2) : NULL;

		if (other)
			value = draft_value(d, other);
		if (value && !draft_value(d, path))
			draft_set(d, path, value);
	}
}

/* What is sent although nobody asks for it is switched off by its own word, unless the engine takes
 * another one itself. */
static void say_none(struct draft *d, const struct engine *e)
{
	static const char *const paths[] = { "parallelism.sharding", "recompute" };
	const struct engine_checks *c = e->checks;

	for (size_t k = 0; k < ELEMENTSOF(paths) && !engine_has_values(e); k++) {
		bool untold = false;

		for (size_t i = 0; c && i < c->n_untold; i++)
			untold |= mo_streq(c->untold[i].key, paths[k]);
		for (size_t f = 0; f < e->n_flags && !untold && !draft_value(d, paths[k]); f++)
			if (mo_starts_with(e->flags[f].key, paths[k]))
				draft_set(d, paths[k], "none");
	}
}

/* torchtitan's own files name a schedule also where there is no pipeline, and it looks at none
 * then; a recipe says none. */
static void no_pipeline(struct draft *d)
{
	const char *pp = draft_value(d, "parallelism.pp");

	for (size_t k = 0; (!pp || mo_streq(pp, "1")) && k < d->n_values; k++)
		if (mo_streq(d->values[k].key, "parallelism.schedule")) {
			mo_vec_remove(&kv_desc, d->values, &d->n_values, k);
			return;
		}
}

/* --train-samples, where the batch is said. */
static void steps_of_samples(struct init *i, const struct engine *e)
{
	const char *batch = draft_value(&i->draft, "batch.global");
	struct word_flags flags;
	int64_t samples = 0, global = 1;

	word_flags_read(i->line.program, i->line.n_program, &flags);
	const struct word_flag *f = word_flags_find(&flags, "train-samples");
	bool known = f && f->n == 1 && batch && e->needs_steps &&
		     !draft_value(&i->draft, "steps") &&
		     mo_parse_i64(f->values[0], 1, INT64_MAX, &samples) == 0 &&
		     mo_parse_i64(batch, 1, 1 << 30, &global) == 0 && samples >= global;

	if (known) {
		_cleanup_(mo_freep) char *steps = mo_printf("%lld", (long long)(samples / global));

		draft_set(&i->draft, "steps", steps);
		init_note(i,
			  "steps: %s, --train-samples %s of the original divided by its batch of "
			  "%s%s",
			  steps, f->values[0], batch,
			  word_flags_find(&flags, "rampup-batch-size")
				  ? ", which begins smaller: more are needed"
				  : "");
	}
	word_flags_done(&flags);
}

/* What init's own options say wins over what the original says. */
static void take_steps(struct init *i)
{
	const char *said = draft_value(&i->draft, "steps");
	_cleanup_(mo_freep) char *steps = mo_printf("%lld", (long long)i->steps);

	if (i->steps == MO_NONE)
		return;
	if (said && !mo_streq(said, steps))
		init_note(i, "steps: %s of --steps instead of %s", steps, said);
	draft_set(&i->draft, "steps", steps);
}

/* The file of the version that the line's own words are for. */
static int load_engine(const struct draft *d, struct engine *e, struct mo_error *err)
{
	struct recipe r;

	mo_desc_init(&recipe_desc, &r);
	mo_str_set(&r.engine.kind, d->kind);
	r.engine.args_list = true;
	for (size_t k = 0; k < d->n_args; k++)
		mo_str_set(&((struct kv *)MO_ADD(&r.engine, args, &kv_desc))->key, d->args[k]);
	int k = engine_load_for(&r, e, err);

	mo_desc_done(&recipe_desc, &r);
	return k;
}

static int values_of_engine(struct init *i, struct engine *e)
{
	bool titan = mo_streq(i->draft.kind, "torchtitan");

	if (e->experiment)
		return init_experiment(i, e);
	int r = titan && e->n_config_files ? init_toml(i, e) : 0;

	if (r || i->toml)
		return r;
	if (titan) {
		flags_folder(i, e);
	} else {
		draft_values(&i->draft, e);
		init_saves_dir(i, NULL);
	}
	return 0;
}

static bool is_one_of_many(const struct engine *e)
{
	bool ret = e->processes == PROCESS_PER_NODE;

	for (size_t i = 0; i < e->n_env; i++)
		ret |= e->env[i].value && strstr(e->env[i].value, "{world_size}");
	return ret;
}

int init_engine(struct init *i)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct engine e;
	int r;

	mo_desc_init(&engine_desc, &e);
	if ((r = load_engine(&i->draft, &e, &err)) < 0) {
		mo_desc_done(&engine_desc, &e);
		return init_refuse(i, mo_error_text(&err, r), "the engine's file is damaged");
	}
	r = values_of_engine(i, &e);
	i->one_of_many = is_one_of_many(&e);
	if (!r && !e.experiment)
		no_pipeline(&i->draft);
	if (!r) {
		say_none(&i->draft, &e);
		say_untold(&i->draft, &e);
	}
	if (!r && !e.experiment)
		steps_of_samples(i, &e);
	if (!r)
		take_steps(i);
	if (!r && e.needs_steps && !engine_has_values(&e) && !draft_value(&i->draft, "steps") &&
	    !mo_streq(i->draft.kind, "torch") && !mo_streq(i->draft.kind, "command"))
		r = init_refuse(i,
				"it names no number of iterations, by which the job's end is known",
				"give --steps N");
	if (!r && !e.experiment && !i->toml)
		init_saves_of_line(i, &e);
	mo_desc_done(&engine_desc, &e);
	return r;
}
