/* An experiment as Primus' loader makes one configuration of it (experiment.h): parser.py from
 * parse_exp() on, then primus_config.py's normalisation, then the command line. */
#include "lib/recipe/experiment.h"

#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/experiment_file.h"
#include "lib/recipe/experiment_scalar.h"
#include "lib/recipe/experiment_words.h"

#define CONFIGS "primus/configs"
static const char *const name_keys[] = { "workspace", "work_group", "user_name", "exp_name" };
const char *const experiment_top_keys[EXPERIMENT_TOP_KEYS] = {
	"work_group", "user_name", "exp_name", "workspace", "modules", "platform", "env",
};
static const char *const platform_keys[] = {
	"num_nodes_env_key",     "node_rank_env_key", "master_addr_env_key", "master_port_env_key",
	"gpus_per_node_env_key", "master_sink_level", "workspace",
};

void experiment_done(struct experiment *e)
{
	for (size_t i = 0; i < e->n_files; i++)
		free(e->files[i]);
	for (size_t i = 0; i < e->n_skipped; i++)
		free(e->skipped[i]);
	for (size_t i = 0; i < e->n_idle; i++)
		free(e->idle[i]);
	for (size_t i = 0; i < e->n_unread; i++)
		free(e->unread[i]);
	for (size_t i = 0; i < e->n_repeats; i++)
		free(e->repeats[i].key);
	free(e->repeats);
	free(e->unread);
	free(e->files);
	free(e->skipped);
	free(e->idle);
	free(e->framework);
	free(e->module);
	config_value_free(e->merged);
	config_value_free(e->names);
	*e = (struct experiment){ 0 };
}

char *experiment_place(const struct experiment *e, struct config_place place)
{
	if (place.file < 0 || place.file >= (int64_t)e->n_files)
		return mo_strdup("the command");
	return mo_printf("%s:%lld", e->files[place.file], (long long)place.line);
}

static bool among(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(word, words[i]))
			return true;
	return false;
}

/* Every key of what was read must be a text. */
static int check_keys(struct experiment_reader *r, const struct config_value *v)
{
	const struct config_pair *bad = config_bad_key(v);

	return bad ? experiment_error(r, bad->value->place, "put it into quotes",
				      "the key '%.60s' is no text in YAML 1.1, and Primus takes "
				      "only texts",
				      bad->key)
		   : 0;
}

/* A key that a map must have, and a key of it that may be meant as that one. */
static void missing(struct experiment_reader *r, const struct config_value *map, const char *key)
{
	_cleanup_(mo_freep) const char **names = mo_alloc_array(map->n + 1, sizeof(*names));

	for (size_t i = 0; i < map->n; i++)
		names[i] = map->items[i].key;
	const char *near = mo_near_miss(key, names, map->n);
	_cleanup_(mo_freep) char *hint = near ? mo_printf("is '%.60s' meant as it?", near) : NULL;

	experiment_error(r, near ? config_get(map, near)->place : map->place, hint,
			 "missing key '%s'", key);
}

/* A key of `map` that must be a text. */
static const char *text_of(struct experiment_reader *r, const struct config_value *map,
			   const char *key)
{
	const struct config_value *v = config_get(map, key);

	if (!v)
		missing(r, map, key);
	else if (v->kind != CONFIG_TEXT)
		experiment_error(r, v->place,
				 "put it into quotes, or choose one that is no number and no truth "
				 "value",
				 "%s: Primus needs a text here, and reads %s%s%s%s", key,
				 config_kind_names[v->kind], v->text ? " ('" : "",
				 v->text ? v->text : "", v->text ? "')" : "");
	return v && v->kind == CONFIG_TEXT ? v->text : NULL;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* primus/configs/TYPE/FRAMEWORK/NAME[.yaml]; key: what names it. */
static struct config_value *preset(struct experiment_reader *r, const struct config_value *module,
				   const char *key, const char *type, const char *framework)
{
	const char *name = text_of(r, module, key);
	struct config_place from = module->place;

	if (!name)
		return NULL;
	from = config_get(module, key)->place;
	bool yaml = ends_with(name, ".yaml") || ends_with(name, ".yml");
	_cleanup_(mo_freep) char *file = mo_printf("%s/%s%s", framework, name, yaml ? "" : ".yaml");
	_cleanup_(mo_freep) char *dir = mo_printf(CONFIGS "/%s/", type);
	_cleanup_(mo_freep) char *path = experiment_path(dir, file);

	if (!mo_starts_with(path, CONFIGS "/")) {
		experiment_error(r, from, NULL, "%s: '%s' leads out of " CONFIGS, key, name);
		return NULL;
	}
	_cleanup_(config_value_freep) struct config_value *v =
		experiment_load(r, path, key, from, NULL);

	if (!v || check_keys(r, v) < 0)
		return NULL;
	config_known(v);
	return TAKE_PTR(v);
}

static int merge_over(struct experiment_reader *r, struct config_value *into,
		      struct config_value *over)
{
	struct config_place place = over->place;

	config_merge(into, over);
	config_settle(into);
	return into->n <= CONFIG_KEYS_MAX
		       ? 0
		       : experiment_error(r, place, NULL, "more than %d keys in one map",
					  CONFIG_KEYS_MAX);
}

/* What the model's preset says where the module's says nothing: by its first key only. Takes
 * model. */
static int fill_in(struct experiment_reader *r, struct config_value *into,
		   struct config_value *model)
{
	_cleanup_(config_value_freep) struct config_value *from = model;
	struct config_value *fresh = config_value_new(CONFIG_MAP, NULL, from->place);

	config_value_free(config_take(from, "name"));
	for (size_t i = 0; i < from->n; i++) {
		struct config_value *v = TAKE_PTR(from->items[i].value),
				    *winner = config_get(into, from->items[i].key);

		if (winner)
			config_replaced(winner, v);
		else
			config_put(fresh, from->items[i].key, v);
	}
	return merge_over(r, into, fresh);
}

/* Keys of the module beside those that it must have, where the preset has none. */
static void keep_own(struct config_value *module, struct config_value *into)
{
	static const char *const reserved[] = { "name",  "framework", "config",
						"model", "overrides", "params" };

	for (size_t i = 0; i < module->n; i++) {
		const char *key = module->items[i].key;

		if (*key != '_' && !among(key, reserved, ELEMENTSOF(reserved)) &&
		    !config_get(into, key))
			config_put(into, key, TAKE_PTR(module->items[i].value));
	}
}

static struct config_value *copy_text(const struct config_value *v)
{
	return config_value_new(CONFIG_TEXT, v->text, v->place);
}

static int apply_overrides(struct experiment_reader *r, struct config_value *module,
			   struct config_value *into)
{
	struct config_value *over = config_take(module, "overrides");

	if (!over || over->kind == CONFIG_NULL) {
		config_value_free(over);
		return 0;
	}
	if (over->kind == CONFIG_MAP)
		return merge_over(r, into, over);
	experiment_error(r, over->place, NULL, "overrides: expected a mapping, got %s",
			 config_kind_names[over->kind]);
	config_value_free(over);
	return -EINVAL;
}

/* What a trainer gets: all but the words about the module itself. Takes v. */
static struct config_value *parameters(struct experiment_reader *r, struct config_value *v)
{
	static const char *const reserved[] = { "name", "framework", "config", "params",
						"trainer_class" };
	_cleanup_(config_value_freep) struct config_value *all = v;
	_cleanup_(config_value_freep) struct config_value *ret = config_take(all, "params");

	if (ret && ret->kind != CONFIG_MAP && ret->kind != CONFIG_NULL) {
		experiment_error(r, ret->place, NULL, "params: expected a mapping, got %s",
				 config_kind_names[ret->kind]);
		return NULL;
	}
	if (!ret || ret->kind != CONFIG_MAP) {
		config_value_free(ret);
		ret = config_value_new(CONFIG_MAP, NULL, all->place);
	}
	for (size_t i = 0; i < all->n; i++)
		if (*all->items[i].key != '_' &&
		    !among(all->items[i].key, reserved, ELEMENTSOF(reserved)))
			config_put(ret, all->items[i].key, TAKE_PTR(all->items[i].value));
	return TAKE_PTR(ret);
}

/* One module of the file, with its presets. *ret NULL and 0: one without them, which Primus does
 * not find later. */
static int read_module(struct experiment_reader *r, struct config_value *module,
		       char **ret_framework, struct config_value **ret)
{
	const char *framework = text_of(r, module, "framework");
	bool config = config_get(module, "config"), model = config_get(module, "model");

	*ret = NULL;
	if (!framework)
		return -EINVAL;
	if (!config)
		return 0;
	if (!model) {
		missing(r, module, "model");
		return -EINVAL;
	}
	_cleanup_(config_value_freep) struct config_value *into =
		preset(r, module, "config", "modules", framework);

	if (!into)
		return -EINVAL;
	struct config_value *of_model = preset(r, module, "model", "models", framework);

	if (!of_model)
		return -EINVAL;
	config_put(into, "framework", copy_text(config_get(module, "framework")));
	if (!config_get(of_model, "model"))
		config_put(of_model, "model", copy_text(config_get(module, "model")));
	*ret_framework = mo_strdup(framework);
	keep_own(module, into);
	if (fill_in(r, into, of_model) < 0 || apply_overrides(r, module, into) < 0)
		return -EINVAL;
	*ret = parameters(r, TAKE_PTR(into));
	return *ret ? 0 : -EINVAL;
}

static bool is_alias(const char *a, const char *b)
{
	return (!strcmp(a, "pre_trainer") && !strcmp(b, "post_trainer")) ||
	       (!strcmp(a, "post_trainer") && !strcmp(b, "pre_trainer"));
}

/* All modules are read, as Primus does; the one asked for stays, or the other trainer in its
 * place. */
static int read_modules(struct experiment_reader *r, struct config_value *top, const char *asked)
{
	struct config_value *modules = config_get(top, "modules");

	if (!modules) {
		missing(r, top, "modules");
		return -EINVAL;
	}
	if (modules->kind != CONFIG_MAP)
		return experiment_error(r, modules->place, NULL, "modules: expected a mapping");
	for (size_t i = 0; i < modules->n; i++) {
		const char *name = modules->items[i].key;
		struct config_value *module = modules->items[i].value, *merged = NULL;
		_cleanup_(mo_freep) char *framework = NULL;

		if (!strstr(name, "trainer"))
			return experiment_error(r, module->place, NULL,
						"the module '%.60s': Primus takes only those with "
						"`trainer` in their name",
						name);
		if (module->kind != CONFIG_MAP)
			return experiment_error(r, module->place, NULL,
						"the module '%.60s': expected a mapping", name);
		if (read_module(r, module, &framework, &merged) < 0)
			return -EINVAL;
		if (!merged || (strcmp(name, asked) != 0 &&
				(!is_alias(name, asked) || mo_streq(r->out->module, asked)))) {
			config_value_free(merged);
			continue;
		}
		config_value_free(r->out->merged);
		r->out->merged = merged;
		mo_str_set(&r->out->module, name);
		r->out->module_place = module->place;
		r->out->framework_place = config_get(module, "framework")->place;
		free(r->out->framework);
		r->out->framework = TAKE_PTR(framework);
	}
	return r->out->merged ? 0
			      : experiment_error(r, modules->place, NULL,
						 "no module '%s' with `config` and `model`: Primus "
						 "would not find it",
						 asked);
}

static int read_names(struct experiment_reader *r, struct config_value *top)
{
	r->out->names = config_value_new(CONFIG_MAP, NULL, top->place);
	for (size_t i = 0; i < ELEMENTSOF(name_keys); i++)
		if (!text_of(r, top, name_keys[i]))
			return -EINVAL;
	for (size_t i = 0; i < ELEMENTSOF(name_keys); i++)
		config_put(r->out->names, name_keys[i], config_take(top, name_keys[i]));
	return 0;
}

/* Nothing of it is a parameter of the training; but without it Primus does not begin. */
static int read_platform(struct experiment_reader *r, struct config_value *top)
{
	struct config_value *own = config_get(top, "platform");
	const char *name = "platform_azure.yaml";

	if (own && own->kind != CONFIG_MAP)
		return experiment_error(r, own->place, NULL, "platform: expected a mapping");
	if (own)
		name = text_of(r, own, "config");
	if (!name)
		return -EINVAL;
	_cleanup_(mo_freep) char *path = experiment_path(CONFIGS "/platforms/", name);
	_cleanup_(config_value_freep) struct config_value *platform =
		experiment_load(r, path, "platform", own ? own->place : top->place, NULL);

	if (!platform || check_keys(r, platform) < 0)
		return -EINVAL;
	if (own && apply_overrides(r, own, platform) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ELEMENTSOF(platform_keys); i++)
		if (!own ? !config_get(platform, platform_keys[i]) &&
				    strcmp(platform_keys[i], "master_sink_level") != 0
			 : !config_get(platform, platform_keys[i]))
			return experiment_error(r, platform->place, NULL, "missing key '%s'",
						platform_keys[i]);
	return 0;
}

static void note_idle(struct experiment_reader *r, const struct config_value *top)
{
	for (size_t i = 0; i < top->n; i++) {
		if (among(top->items[i].key, experiment_top_keys, EXPERIMENT_TOP_KEYS))
			continue;
		_cleanup_(mo_freep) char *where =
			experiment_place(r->out, top->items[i].value->place);
		_cleanup_(mo_freep) char *idle = mo_printf("%s: %s", where, top->items[i].key);

		mo_strs_add(&r->out->idle, &r->out->n_idle, idle);
	}
}

static int read_all(struct experiment_reader *r, const struct experiment_words *w)
{
	_cleanup_(config_value_freep) struct config_value *given = w->given;
	const struct config_place nowhere = { .file = -1, .word = -1 };
	int e = -EINVAL;
	_cleanup_(mo_freep) char *path = experiment_path(NULL, w->file);
	_cleanup_(config_value_freep) struct config_value *top =
		experiment_load(r, path, "the experiment", nowhere, &e);

	if (!top)
		return e < 0 ? e : -EINVAL;
	note_idle(r, top);
	if (check_keys(r, top) < 0)
		return -EINVAL;
	config_known(top);
	if (read_names(r, top) < 0 || read_platform(r, top) < 0 ||
	    read_modules(r, top, w->module) < 0)
		return -EINVAL;
	config_merge(r->out->merged, TAKE_PTR(given));
	return 0;
}

int experiment_resolve(const struct experiment_world *world, char *const *words, size_t n_words,
		       struct experiment *ret, struct mo_error *err)
{
	struct experiment_words w = { 0 };
	struct experiment_reader r = { .world = world, .out = ret, .err = err };
	int e;

	*ret = (struct experiment){ 0 };
	e = experiment_words_read(words, n_words, &w, ret, err);
	if (e >= 0 && w.file) {
		e = read_all(&r, &w);
	} else if (e >= 0) {
		config_value_free(w.given);
		e = mo_error_set(err, -EINVAL, "the command names no experiment: no --config");
	}
	if (e < 0)
		experiment_done(ret);
	return e;
}

static void without_words(struct config_value *map)
{
	for (size_t i = map->n; i-- > 0;) {
		struct config_value *v = map->items[i].value;

		if (v->kind == CONFIG_MAP && v->n)
			without_words(v);
		if (v->kind == CONFIG_MAP ? v->n > 0 : v->place.file >= 0)
			continue;
		while (v && v->place.file < 0) {
			struct config_value *over = TAKE_PTR(v->over);

			config_value_free(v);
			v = over;
		}
		map->items[i].value = v;
		if (!v)
			config_take(map, map->items[i].key);
	}
}

void experiment_without_words(struct experiment *x)
{
	without_words(x->merged);
}

int experiment_command(struct experiment *x, char *const *words, size_t n_words,
		       struct mo_error *err)
{
	struct experiment_words w = { 0 };
	struct experiment said = { 0 };
	int r = experiment_words_read(words, n_words, &w, &said, err);

	if (r >= 0) {
		experiment_without_words(x);
		config_merge(x->merged, w.given);
	}
	experiment_done(&said);
	return MO_MIN(r, 0);
}
