/* What the engines say of a draft: their files of flags read backwards, and their own
 * configurations (init.c). */
#include "cli/init_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/recipe/config_files.h"
#include "lib/recipe/config_toml.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/engine_load.h"
#include "lib/recipe/engine_version.h"
#include "lib/recipe/experiment_kind.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/rules_files.h"
#include "lib/recipe/word_flags.h"

/* ---- an experiment of Primus ---- */

static int read_below(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	const struct init *i = arg;
	_cleanup_(mo_freep) char *whole =
		*path == '/' ? mo_strdup(path) : mo_printf("%s/%s", i->draft.workdir, path);

	return mo_read_file(whole, most, ret);
}

/* Of a rank: what the launch sets, and the user's name. */
static const char *variable(void *arg, const char *name)
{
	const struct init *i = arg;

	for (size_t k = 0; k < i->draft.n_env; k++)
		if (mo_streq(i->draft.env[k].key, name))
			return i->draft.env[k].value;
	return mo_streq(name, "USER") || mo_streq(name, "LOGNAME") || mo_streq(name, "HOME")
		       ? getenv(name)
		       : NULL;
}

/* "train_iters" of the row `steps: --train_iters`; NULL = it has none. Caller frees. */
static char *key_of(const struct engine *e, const char *path)
{
	for (size_t k = 0; k < e->n_flags; k++)
		if (mo_streq(e->flags[k].key, path)) {
			const char *flag = e->flags[k].value + strspn(e->flags[k].value, "-");
			return mo_strndup(flag, strcspn(flag, " "));
		}
	return NULL;
}

static const struct config_value *value_of(const struct experiment *x, const char *key)
{
	const struct config_value *v = key ? config_find(x->merged, key) : NULL;

	return v && v->kind != CONFIG_NULL ? v : NULL;
}

static void take_size(const struct engine *e, const struct experiment *x, const char *path,
		      int64_t *ret)
{
	struct experiment_said said = { 0 };
	int64_t v = 1;

	if (experiment_value(e, x, path, &said) && mo_parse_i64(said.text, 1, 100000, &v) == 0)
		*ret = v;
	experiment_said_done(&said);
}

static void need_gpus(struct init *i, const struct engine *e, const struct experiment *x)
{
	int64_t tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;

	take_size(e, x, "parallelism.tp", &tp);
	take_size(e, x, "parallelism.pp", &pp);
	take_size(e, x, "parallelism.cp", &cp);
	take_size(e, x, "parallelism.ep", &ep);
	take_size(e, x, "parallelism.etp", &etp);
	i->least_gpus = pp * MO_MAX(tp * cp, ep * etp);
}

static void steps_of_file(struct draft *d, const struct engine *e, const struct experiment *x)
{
	_cleanup_(mo_freep) char *key = key_of(e, "steps");
	const struct config_value *steps = value_of(x, key);

	if (steps && steps->text && !draft_value(d, "steps"))
		draft_set(d, "steps", steps->text);
}

/* Where the original writes; NULL = it saves nothing. Caller frees. */
static char *saved_to(const struct init *i, const struct engine *e, const struct experiment *x)
{
	const struct config_value *enable = value_of(x, "checkpoint.enable"),
				  *folder = value_of(x, "checkpoint.folder"),
				  *old = value_of(x, "checkpoint.enable_checkpoint"), /* 0.1 */
					  *dump = value_of(x, "job.dump_folder");

	if (value_of(x, "save"))
		return experiment_directory(e, x, i->draft.workdir);
	enable = enable ? enable : old;
	if (!enable || !mo_streq(enable->text, "true"))
		return NULL;
	const char *to = folder && folder->text ? folder->text : "checkpoint",
		   *out = dump && dump->text ? dump->text : "outputs";
	_cleanup_(mo_freep) char *below = mo_printf("%s/%s", out, to),
				 *whole = mo_printf("%s/%s", i->draft.workdir, below);

	return mo_path_clean(to[0] == '/' ? to : below[0] == '/' ? below : whole);
}

#define EVERY 500 /* iterations between saves where the original has none */

/* Saves that a run of so few steps gets at all. */
static int64_t every_for(const struct draft *d)
{
	const char *text = draft_value(d, "steps");
	int64_t steps;

	if (!text || mo_parse_i64(text, 1, INT64_MAX, &steps) < 0 || steps > EVERY)
		return EVERY;
	return MO_MAX(steps / 5, 1);
}

static void drop_saves(struct draft *d)
{
	for (size_t k = d->n_values; k > 0; k--)
		if (mo_starts_with(d->values[k - 1].key, "checkpoint."))
			mo_vec_remove(&kv_desc, d->values, &d->n_values, k - 1);
}

static void note_no_saves(struct init *i)
{
	init_note(i,
		  "the original saves no checkpoints, so after a failure it begins again: add "
		  "checkpoint: {dir: /ckpt/%s/checkpoints, every: %lld}",
		  i->draft.name ? i->draft.name : "NAME", (long long)every_for(&i->draft));
}

static void saves(struct init *i, const struct engine *e, const struct experiment *x)
{
	_cleanup_(mo_freep) char *key = key_of(e, "checkpoint.every"), *dir = saved_to(i, e, x);
	const struct config_value *every = value_of(x, key);

	if (!dir) {
		note_no_saves(i);
		return;
	}
	draft_set(&i->draft, "checkpoint.dir", dir);
	if (every && every->text && !draft_value(&i->draft, "checkpoint.every"))
		draft_set(&i->draft, "checkpoint.every", every->text);
}

static int of_experiment(struct init *i, struct engine *e)
{
	const struct experiment_world world = { i, read_below, variable };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct experiment x = { 0 };
	struct draft *d = &i->draft;
	int r = experiment_resolve(&world, i->line.program, i->line.n_program, &x, &err);

	if (r == -ENOENT)
		return init_refuse(i, mo_error_text(&err, r),
				   strchr(mo_error_text(&err, r), '$')
					   ? "its script gets that from outside: moectl init -- "
					     "env NAME=VALUE bash SCRIPT"
					   : "name the directory in which Primus is started: "
					     "--workdir DIR");
	_cleanup_(mo_freep) char *presets = mo_printf("%s/primus/configs", d->workdir);
	if (r < 0 && access(presets, F_OK) < 0)
		return init_refuse(i, mo_error_text(&err, r),
				   "there is no primus/configs in the directory in which it is "
				   "started: name Primus' own: --workdir DIR");
	if (r < 0)
		return init_refuse(i, mo_error_text(&err, r),
				   err.hint ? err.hint : "Primus would not load it either");
	bool post = i->line.n_program > 2 && mo_streq(i->line.program[2], "posttrain");
	_cleanup_(mo_freep) char *kind = experiment_kind(&x, post);
	mo_desc_done(&engine_desc, e);
	mo_desc_init(&engine_desc, e);
	if (!kind || engine_load(kind, e, NULL) < 0) {
		_cleanup_(mo_freep) char *what =
			mo_printf("its framework is %s%s, for which this version has no engine "
				  "kind",
				  x.framework, post ? " for post-training" : "");
		experiment_done(&x);
		return init_refuse(i, what, "those that it has are in docs/engines.md");
	}
	mo_str_set(&d->kind, kind);
	draft_values(d, e);
	const struct config_value *name = config_get(x.names, "exp_name");
	init_name(i, name && name->text ? name->text : "");
	steps_of_file(d, e, &x);
	need_gpus(i, e, &x);
	saves(i, e, &x);
	experiment_done(&x);
	return 0;
}

/* ---- a TOML of torchtitan ---- */

static int read_toml(struct init *i)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct word_flags flags;
	int64_t line = 1;

	word_flags_read(i->draft.args, i->draft.n_args, &flags);
	const struct word_flag *f = word_flags_find(&flags, "job.config_file");
	_cleanup_(mo_freep) char *path =
		!f || f->n != 1          ? NULL
		: f->values[0][0] == '/' ? mo_strdup(f->values[0])
					 : mo_printf("%s/%s", i->draft.workdir, f->values[0]);
	_cleanup_(mo_freep) char *shown = f && f->n == 1 ? mo_strdup(f->values[0]) : NULL;
	word_flags_done(&flags);
	if (!path)
		return 0;
	const char *slash = strrchr(path, '/');
	_cleanup_(mo_freep) char *base = mo_strndup(slash + 1, strcspn(slash + 1, "."));
	init_name(i, base);
	int r = mo_read_file(path, MO_RECIPE_BYTES_MAX, &b);
	if (r < 0) {
		_cleanup_(mo_freep) char *what = mo_printf("%s: %s", path, strerror(-r));
		return init_refuse(i, what,
				   "name the directory in which torchtitan is started: --workdir "
				   "DIR");
	}
	i->toml = config_toml(b.data ? b.data : "", b.len, (struct config_place){ 0, 1, -1 }, &line,
			      &err);
	if (!i->toml) {
		_cleanup_(mo_freep) char *what = mo_printf("%s:%lld: %s", shown, (long long)line,
							   mo_error_text(&err, -EINVAL));
		return init_refuse(i, what, "correct the file");
	}
	return 0;
}

/* pyproject.toml is a TOML, too. */
static bool is_of_engine(const struct engine *e, const struct config_value *toml)
{
	struct config_item *items = NULL;
	size_t n = 0;
	bool is = !e->checks || !e->checks->n_keys;

	config_items(toml, &items, &n);
	is |= n == 0;
	for (size_t k = 0; k < n && !is; k++)
		for (size_t c = 0; c < e->checks->n_keys && !is; c++) {
			size_t len = strcspn(e->checks->keys[c], ".");

			is = strcspn(items[k].key, ".") == len &&
			     !strncmp(items[k].key, e->checks->keys[c], len);
		}
	config_items_free(items, n);
	return is;
}

/* What the file says stays there; the line's own words become the recipe's. Beside them stand
 * only where and how often it saves, which moectl decides. */
static int of_toml(struct init *i, struct engine *e)
{
	const struct experiment_world world = { i, read_below, variable };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct experiment x = { 0 };
	int r = read_toml(i);

	if (r || !i->toml)
		return r;
	if (!is_of_engine(e, i->toml))
		return init_refuse(i, "none of its tables is one of torchtitan",
				   "give a TOML with [model], [training] and their like, or the "
				   "line that starts your training");
	_cleanup_(mo_freep) char *kind = engine_kind_of_keys(e, i->toml);

	/* a file of another version */
	if (kind) {
		mo_str_set(&i->draft.kind, kind);
		mo_desc_done(&engine_desc, e);
		mo_desc_init(&engine_desc, e);
		if (engine_load(kind, e, &err) < 0)
			return init_refuse(i, mo_error_text(&err, -EINVAL),
					   "reinstall the data files");
	}
	r = config_files_resolve(e, NULL, &world, i->line.program, i->line.n_program, &x, &err);
	if (r < 0)
		return init_refuse(i, mo_error_text(&err, r), "correct the file");
	draft_values(&i->draft, e);
	steps_of_file(&i->draft, e, &x);
	need_gpus(i, e, &x);
	saves(i, e, &x);
	if (!draft_value(&i->draft, "checkpoint.dir"))
		drop_saves(&i->draft);
	experiment_done(&x);
	return 0;
}

/* The words that say where and how often. */
static void lose_saves(struct draft *d, const char *why)
{
	for (size_t k = 0; k < d->n_said; k++)
		if (mo_starts_with(d->said[k].key, "checkpoint."))
			draft_lose(d, "%s: %s", d->said[k].value, why);
}

/* A folder of the command, relative to what its engine takes for it. */
static void absolute_dir(struct init *i, const char *dump)
{
	const char *dir = draft_value(&i->draft, "checkpoint.dir");
	_cleanup_(mo_freep) char *whole = NULL, *clean = NULL;

	if (dir && (strpbrk(dir, "$`") || strstr(dir, "://"))) { /* no recipe may hold it */
		lose_saves(&i->draft, strstr(dir, "://")
					      ? "it is no directory that the nodes mount, of which "
						"moectl can read what was saved"
					      : "where it saves is not known: write it in, as "
						"checkpoint: {dir: DIR, every: N}");
		i->saves_unknown = true;
		drop_saves(&i->draft);
		return;
	}
	if (!dir || dir[0] == '/')
		return;
	whole = dump && dump[0] == '/' ? mo_printf("%s/%s", dump, dir)
				       : mo_printf("%s/%s%s%s", i->draft.workdir, dump ? dump : "",
						   dump ? "/" : "", dir);
	clean = mo_path_clean(whole);
	init_note(i,
		  "checkpoint.dir: %s of the original, from where it is started; every node must "
		  "see it there",
		  dir);
	draft_set(&i->draft, "checkpoint.dir", clean);
}

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
	absolute_dir(i, dir);
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

static void note_saves_of_line(struct init *i, const struct engine *e)
{
	bool known = false;

	for (size_t k = 0; k < e->n_flags; k++)
		known |= mo_starts_with(e->flags[k].key, "checkpoint.dir");
	if (!known)
		init_note(i,
			  "nothing is known of its checkpoints, so after a failure it begins "
			  "again: checkpoint.dir, layout and resume_args are in docs/scripts.md");
	else if (!draft_value(&i->draft, "checkpoint.dir") && !i->saves_unknown)
		note_no_saves(i);
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
		return of_experiment(i, e);
	int r = titan && e->n_config_files ? of_toml(i, e) : 0;

	if (r || i->toml)
		return r;
	if (titan) {
		flags_folder(i, e);
	} else {
		draft_values(&i->draft, e);
		absolute_dir(i, NULL);
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
		note_saves_of_line(i, &e);
	mo_desc_done(&engine_desc, &e);
	return r;
}
