/* Values of a recipe that are more than a scalar: each is read from its node by a function that
 * its row in keys.c names. */
#include "lib/recipe/key_readers.h"

#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/health_file.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/layout_text.h"
#include "lib/recipe/schema_scalar.h"

void key_read_format(struct reader *r, const struct key *k, const struct ynode *v)
{
	int64_t format;

	if (!value_whole(v, &format) || format != 1)
		errors_at(r->errors, v, NULL,
			  "recipe: this version reads format 1: write 'recipe: 1'");
}

static void read_args_list(struct reader *r, struct recipe_engine *e, const struct ynode *v)
{
	e->args_list = true;
	for (size_t i = 0; i < v->n; i++) {
		_cleanup_(mo_freep) char *word = NULL;
		const struct ynode *item = v->items[i].value;

		if (ynode_is_empty(item) || !value_text(r, "engine.args", item, &word))
			continue;
		MO_ADD(e, args, &kv_desc)->key = TAKE_PTR(word);
	}
}

static void read_args_map(struct reader *r, struct recipe_engine *e, const struct ynode *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *item = v->items[i].value;
		_cleanup_(mo_freep) char *what = mo_printf("engine.args.%s", v->items[i].key->text),
					 *text = NULL;
		bool flag = item->kind == YAML_SCALAR && item->plain &&
			    (mo_streq(item->text, "true") || mo_streq(item->text, "false"));

		if (ynode_is_null(item))
			continue;
		if (flag && mo_streq(item->text, "false")) {
			mo_strs_add(&e->args_off, &e->n_args_off, v->items[i].key->text);
			continue;
		}
		if (item->kind != YAML_SCALAR)
			errors_at(r->errors, item, "write args as a list of words, or dotted keys",
				  "%s: expected one value, got %s", what,
				  item->kind == YAML_MAP ? "a mapping" : "a list");
		else if (ynode_is_empty(item))
			errors_at(r->errors, item, "'true' is the bare flag, \"\" an empty value",
				  "%s: has no value", what);
		else if (flag || value_text(r, what, item, &text)) {
			struct kv *arg = MO_ADD(e, args, &kv_desc);

			mo_str_set(&arg->key, v->items[i].key->text);
			arg->value = TAKE_PTR(text);
		}
	}
}

void key_read_args(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];

	if (v->kind == YAML_LIST)
		read_args_list(r, &recipe->engine, v);
	else if (v->kind == YAML_MAP)
		read_args_map(r, &recipe->engine, v);
	else
		errors_at(r->errors, v, "write {key: value} or [--key, value]",
			  "engine.args: expected a mapping or a list");
}

void key_read_moe(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_model *model = r->bases[BASE_MODEL];

	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL,
			  "model.moe: expected a mapping with experts, topk and ffn");
		return;
	}
	if (!model->moe) {
		model->moe = mo_alloc(sizeof(*model->moe));
		*model->moe = (struct recipe_moe){ MO_NONE, MO_NONE, MO_NONE, MO_NONE,
						   MO_NONE, MO_NONE, MO_NONE, MO_NONE };
	}
	r->bases[BASE_MOE] = model->moe;
	schema_defaults(r, "model.moe.");
	schema_read(r, "model.moe.", v);
}

void key_read_mla(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_model *model = r->bases[BASE_MODEL];

	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL,
			  "model.mla: expected a mapping with kv_lora, qk_nope, qk_rope and v");
		return;
	}
	if (!model->mla) {
		model->mla = mo_alloc(sizeof(*model->mla));
		*model->mla = (struct recipe_mla){ MO_NONE, MO_NONE, MO_NONE, MO_NONE, MO_NONE };
	}
	r->bases[BASE_MLA] = model->mla;
	schema_defaults(r, "model.mla.");
	schema_read(r, "model.mla.", v);
}

void key_read_parallelism(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];

	if (v->kind == YAML_MAP) {
		recipe->parallelism.given = true;
		schema_read(r, "parallelism.", v);
	} else if (v->kind == YAML_SCALAR && mo_streq(v->text, "auto"))
		recipe->parallelism.automatic = true;
	else
		errors_at(r->errors, v, NULL,
			  "parallelism: expected auto or a mapping such as {tp: 1, pp: 1, ep: 8}");
}

void key_read_features(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_MAP)
		errors_at(r->errors, v, NULL, "features: expected a mapping");
	else
		schema_read(r, "features.", v);
}

static void read_env_file(struct reader *r, struct recipe_env *e, const char *what,
			  const struct ynode *v)
{
	const struct ynode *file = v->n == 1 ? ynode_get(v, "file") : NULL;

	if (!file || file->kind != YAML_SCALAR || file->text[0] != '/')
		errors_at(r->errors, file ? file : v, "the file is read on the node",
			  "%s: expected a value or {file: /absolute/path}", what);
	else
		mo_str_set(&e->file, file->text);
}

void key_read_env(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];

	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL, "env: expected a mapping NAME: value");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *key = v->items[i].key, *value = v->items[i].value;
		_cleanup_(mo_freep) char *what = mo_printf("env.%s", key->text);
		bool name_ok =
			*key->text &&
			strspn(key->text,
			       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
				strlen(key->text) &&
			!strchr("0123456789", key->text[0]);

		if (!name_ok)
			errors_at(r->errors, key, NULL,
				  "env: '%.60s' is not a variable's name: letters, digits and '_', "
				  "no digit first",
				  key->text);
		else if (ynode_is_empty(value))
			errors_at(r->errors, value, "write \"\" for an empty value",
				  "%s: has no value", what);
		else if (!ynode_is_null(value)) {
			struct recipe_env *e = MO_GROW(recipe->env, recipe->n_env);

			mo_str_set(&e->name, key->text);
			if (value->kind == YAML_MAP)
				read_env_file(r, e, what, value);
			else
				value_text(r, what, value, &e->value);
		}
	}
}

void key_read_loss_spike(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];

	if (v->kind == YAML_MAP)
		schema_read(r, "recovery.loss_spike.", v);
	else if (v->kind == YAML_LIST ||
		 (!ynode_is_null(v) && !mo_streq(v->text, "none") && !mo_streq(v->text, "false")))
		errors_at(r->errors, v, NULL,
			  "recovery.loss_spike: expected none, or a mapping such as {action: "
			  "rollback}");
	else if (recipe && !ynode_is_null(v))
		mo_str_set(&recipe->loss_action, "none");
}

/* The checks that are installed here; site.yaml of the nodes may know more, so without any
 * readable file every id is taken. */
static void check_id(struct reader *r, const struct ynode *v, const struct health_checks *known)
{
	_cleanup_(mo_freep) const char **ids = mo_alloc_array(known->n_checks + 1, sizeof(*ids));
	_cleanup_(mo_freep) char *hint = NULL;
	const char *near;

	if (v->kind != YAML_SCALAR || ynode_is_null(v) || !*v->text || strlen(v->text) > 63 ||
	    mo_streq(v->text, "standard") || mo_streq(v->text, "none") ||
	    strspn(v->text, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(v->text)) {
		errors_at(r->errors, v, NULL,
			  "health.preflight: expected the id of a check, such as gpu.ras_ue");
		return;
	}
	if (known->n_checks == 0)
		return;
	ids[known->n_checks] = "stack.same";
	for (size_t i = 0; i < known->n_checks; i++)
		ids[i] = known->checks[i].id;
	if (mo_enum_parse(ids, known->n_checks + 1, v->text) >= 0)
		return;
	near = mo_near_miss(v->text, ids, known->n_checks + 1);
	hint = near ? mo_printf("did you mean '%s'?", near)
		    : mo_strdup("checks are listed in config/health; stack.same asks for equal "
				"software on all nodes");
	errors_at(r->errors, v, hint, "health.preflight: there is no check '%.63s'", v->text);
}

void key_read_preflight(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];
	struct health_checks known;

	for (size_t i = 0; i < recipe->n_preflight; i++)
		free(recipe->preflight[i]);
	recipe->n_preflight = 0;
	if (v->kind != YAML_LIST) {
		if (v->kind == YAML_MAP ||
		    (!mo_streq(v->text, "standard") && !mo_streq(v->text, "none")))
			errors_at(r->errors, v, NULL,
				  "health.preflight: expected standard, none, or a list of checks "
				  "such as [gpu.ras_ue, nic.state]");
		else
			mo_strs_add(&recipe->preflight, &recipe->n_preflight, v->text);
		return;
	}
	if (v->n == 0)
		mo_strs_add(&recipe->preflight, &recipe->n_preflight, "none");
	mo_desc_init(&health_checks_desc, &known);
	if (v->n > 0 && health_checks_load(&known, NULL) < 0)
		mo_desc_done(&health_checks_desc, &known);
	for (size_t i = 0; i < v->n; i++) {
		const struct ynode *item = v->items[i].value;

		check_id(r, item, &known);
		mo_strs_add(&recipe->preflight, &recipe->n_preflight,
			    item->kind == YAML_SCALAR ? item->text : "");
	}
	mo_desc_done(&health_checks_desc, &known);
}

void key_read_prepare(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_engine *e = &((struct recipe *)r->bases[BASE_RECIPE])->engine;
	_cleanup_(mo_freep) char *text = NULL;

	if (v->kind == YAML_LIST && v->n == 0)
		return;
	if (v->kind == YAML_LIST) {
		value_list(r, k->path, v, &e->prepare_argv, &e->n_prepare_argv);
		return;
	}
	if (!value_text(r, k->path, v, &text))
		return;
	mo_strs_add(&e->prepare_argv, &e->n_prepare_argv, "/bin/sh");
	mo_strs_add(&e->prepare_argv, &e->n_prepare_argv, "-c");
	mo_strs_add(&e->prepare_argv, &e->n_prepare_argv, text);
}

void key_read_metrics_lines(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind == YAML_LIST && v->n > LINE_RULES_MAX)
		errors_at(r->errors, v, NULL,
			  "%s: more than %d rules: every printed line is held against each of them",
			  k->path, LINE_RULES_MAX);
}

void key_read_layout(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_checkpoint *c = &((struct recipe *)r->bases[BASE_RECIPE])->checkpoint;
	_cleanup_(mo_freep) char *wrong =
		value_text(r, k->path, v, &c->layout) ? layout_text_error(c->layout) : NULL;

	if (wrong)
		errors_at(r->errors, v, NULL, "%s: %s", k->path, wrong);
}
