/* See init_config.h. */
#include "cli/init_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/init_saves.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/recipe/config_files.h"
#include "lib/recipe/config_toml.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/engine_load.h"
#include "lib/recipe/experiment_kind.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/rules_files.h"
#include "lib/recipe/word_flags.h"

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

static void saves(struct init *i, const struct engine *e, const struct experiment *x)
{
	_cleanup_(mo_freep) char *key = key_of(e, "checkpoint.every"), *dir = saved_to(i, e, x);
	const struct config_value *every = value_of(x, key);

	if (!dir) {
		init_saves_none(i);
		return;
	}
	draft_set(&i->draft, "checkpoint.dir", dir);
	if (every && every->text && !draft_value(&i->draft, "checkpoint.every"))
		draft_set(&i->draft, "checkpoint.every", every->text);
}

int init_experiment(struct init *i, struct engine *e)
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

int init_toml(struct init *i, struct engine *e)
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
		init_saves_drop(&i->draft);
	experiment_done(&x);
	return 0;
}
