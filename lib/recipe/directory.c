/* See directory.h. The engine joins its names as Python's os.path.join does: an absolute one
 * drops those before it. So the last name is given the whole directory, the one before it its
 * parent, and so on: whichever of them a file fixes in its own text, the last variable that it
 * has decides, and the rest of the path is what the file fixes or it cannot be met at all. */
#include "lib/recipe/directory.h"

#include <errno.h>
#include <string.h>

#include "lib/model/launch.h"
#include "lib/recipe/experiment_values.h"

/* The directory that the engine's names make: `dir` without what the engine adds. Caller frees. */
static char *root_of(const struct engine *e, const char *dir)
{
	size_t n = strlen(dir), below = strlen(e->save_below);

	if (n > below && dir[n - below - 1] == '/' && !strcmp(dir + n - below, e->save_below))
		return n == below + 1 ? mo_strdup("/") : mo_strndup(dir, n - below - 1);
	return mo_strdup(dir);
}

static char *parent_of(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash > dir ? mo_strndup(dir, (size_t)(slash - dir)) : mo_strdup("/");
}

char *engine_directory(const struct engine *e, const char *dir)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(dir);

	if (!clean || !e->save_below)
		return mo_strdup(dir);
	_cleanup_(mo_freep) char *root = root_of(e, clean);

	return mo_printf("%s/%s", strcmp(root, "/") != 0 ? root : "", e->save_below);
}

void directory_settle(struct recipe *r, const struct engine *e)
{
	if (!r->checkpoint.dir)
		return;
	char *dir = engine_directory(e, r->checkpoint.dir);
	_cleanup_(mo_freep) char *clean = mo_path_clean(r->checkpoint.dir);

	r->checkpoint.added |= e->save_below && !mo_streq(clean, dir);
	free(r->checkpoint.dir);
	r->checkpoint.dir = dir;
}

/* One item for each variable of the list. */
static void set(const struct engine *e, const char *variables, const char *value, const char *why,
		struct env_item **items, size_t *n_items)
{
	for (const char *s = variables; *s;) {
		size_t n = strcspn(s, " ");
		struct env_item *item = mo_vec_add(&env_item_desc, (void **)items, n_items);

		item->layer = ENV_ENGINE;
		item->name = mo_strndup(s, n);
		mo_str_set(&item->value, value);
		mo_str_set(&item->reason, why);
		item->source = mo_printf("engines/%s.yaml: experiment.names", e->kind);
		s += n + (s[n] == ' ');
	}
}

void directory_variables(const struct recipe *r, const struct engine *e, struct env_item **items,
			 size_t *n_items)
{
	size_t n = e->n_save_names;

	if (r->checkpoint.dir && e->save_below) {
		char *value = root_of(e, r->checkpoint.dir);

		for (size_t i = n; i-- > 0;) {
			set(e, e->save_names[i].value, value,
			    i + 1 == n ? "the engine saves below it: checkpoint.dir"
				       : "decides where a file fixes the names behind it",
			    items, n_items);
			char *parent = parent_of(value);

			free(value);
			value = parent;
		}
		free(value);
	} else if (!r->checkpoint.dir && n) {
		_cleanup_(mo_freep) char *own = mo_printf("%s-j-{job}", r->name);

		set(e, e->save_names[n - 1].value, own, "no other job writes where this one does",
		    items, n_items);
		if (n > 1)
			set(e, e->save_names[n - 2].value, "j-{job}",
			    "the same, where a file fixes the last name", items, n_items);
	}
}

/* What a recipe's own variables may not decide: the last name, which is the directory. */
static void check_variables(struct rules *k)
{
	const char *s = k->engine->save_names[k->engine->n_save_names - 1].value;

	while (*s) {
		size_t n = strcspn(s, " ");
		_cleanup_(mo_freep) char *path = mo_printf("env.%.*s", (int)n, s);

		if (ynode_find(k->root, path))
			errors_at(k->errors, PLACE(k, path),
				  "without checkpoint.dir it may be given",
				  "%s: it decides where the engine saves, which is checkpoint.dir "
				  "%s: leave it out",
				  path, k->recipe->checkpoint.dir);
		s += n + (s[n] == ' ');
	}
}

/* What a job without checkpoint.dir loses, of an engine that saves somewhere by itself (caller
 * frees); NULL = nothing. */
static char *directory_note(const struct engine *e, const struct recipe *r)
{
	if (!e->n_save_names || r->checkpoint.dir)
		return NULL;
	return mo_printf("checkpoint.dir: not given: nothing is resumed, and a restart begins at 0 "
			 "(the engine writes into %s-j-ID, of this job alone)",
			 r->name);
}

void directory_rules(struct rules *k)
{
	_cleanup_(mo_freep) char *note = directory_note(k->engine, k->recipe);

	if (k->engine->n_save_names && k->engine->save_below && k->recipe->checkpoint.dir)
		check_variables(k);
	if (note)
		rules_warn(k, PLACE(k, "checkpoint", "engine"), "%s", note);
}

/* The names joined as os.path.join does. */
static char *joined(const struct engine *e, const struct experiment *x)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < e->n_save_names; i++) {
		const struct config_value *v = config_get(x->names, e->save_names[i].key);
		const char *text = v->text;

		if (*text == '/')
			mo_buf_reset(&b);
		mo_buf_printf(&b, "%s%s", b.len && b.data[b.len - 1] != '/' ? "/" : "", text);
	}
	return mo_buf_take(&b);
}

char *experiment_directory(const struct engine *e, const struct experiment *x, const char *workdir)
{
	_cleanup_(mo_freep) char *names = joined(e, x);
	_cleanup_(mo_freep) char *whole =
		mo_printf("%s%s%s%s%s",
			  *names == '/' ? ""
			  : workdir     ? workdir
					: "",
			  *names == '/' || !workdir ? "" : "/", names, e->save_below ? "/" : "",
			  e->save_below ? e->save_below : "");

	return mo_path_clean(whole);
}

/* The name that is in the way: from the last one, those that no variable made are taken off the
 * directory, until one does not end it. */
static const struct kv *in_the_way(const struct engine *e, const struct experiment *x,
				   const char *dir)
{
	_cleanup_(mo_freep) char *rest = root_of(e, dir);

	for (size_t i = e->n_save_names; i-- > 0;) {
		const struct config_value *v = config_get(x->names, e->save_names[i].key);
		size_t n = strlen(v->text), len = strlen(rest);

		if (n >= len || *v->text == '/' || rest[len - n - 1] != '/' ||
		    strcmp(rest + len - n, v->text) != 0)
			return &e->save_names[i];
		rest[len - n - 1] = 0;
	}
	return &e->save_names[0];
}

/* What every directory must end in: the names behind the last one that a variable made. Caller
 * frees. */
static char *fixed_end(const struct engine *e, const struct experiment *x)
{
	struct mo_buf b = { 0 };
	size_t from = e->n_save_names;

	while (from > 0 && *config_get(x->names, e->save_names[from - 1].key)->text != '/')
		from--;
	for (size_t i = from; i < e->n_save_names && from > 0; i++)
		mo_buf_printf(&b, "/%s", config_get(x->names, e->save_names[i].key)->text);
	mo_buf_printf(&b, "/%s", e->save_below);
	return mo_buf_take(&b);
}

int experiment_directory_check(const struct engine *e, const struct recipe *r,
			       const struct experiment *x, struct mo_error *err)
{
	if (!r->checkpoint.dir || !e->save_below || !e->n_save_names)
		return 0;
	_cleanup_(mo_freep) char *really = experiment_directory(e, x, r->engine.workdir);

	if (mo_streq(really, r->checkpoint.dir))
		return 0;
	const struct kv *name = in_the_way(e, x, r->checkpoint.dir);
	const struct config_value *v = config_get(x->names, name->key);
	_cleanup_(mo_freep) char *place = experiment_place(x, v->place);
	_cleanup_(mo_freep) char *end = fixed_end(e, x);
	size_t n = strcspn(name->value, " ");

	mo_error_hint(err, "name a directory that ends in %s, or write `%s: ${%.*s:%s}` there", end,
		      name->key, (int)n, name->value, v->text);
	return mo_error_set(err, -EINVAL,
			    "checkpoint.dir: %s cannot be met: %s is '%s' at %s, and the engine "
			    "would save to %s",
			    r->checkpoint.dir, name->key, v->text, place, really);
}
