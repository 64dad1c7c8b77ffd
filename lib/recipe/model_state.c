/* config/checkpoints/model-state.yaml -> what a layout takes for the state of a model. Called
 * for every engine file that is loaded. */
#include "lib/recipe/model_state.h"

#include <errno.h>

#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"
#include "lib/recipe/schema_scalar.h"

static void read_format(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_SCALAR || !mo_streq(v->text, "1"))
		errors_at(r->errors, v, NULL,
			  "model_state: this version reads format 1: write 'model_state: 1'");
}

static void read_source(struct reader *r, const struct key *k, const struct ynode *v)
{
	_cleanup_(mo_freep) char *text = NULL;

	value_text(r, k->path, v, &text);
}

#define L(p, t, f, ...) \
	{ \
		.path = (p), .type = (t), .offset = offsetof(struct ckpt_layout, f), \
		.required = true, ##__VA_ARGS__ \
	}
static const struct key keys[] = {
	{ .path = "model_state", .type = KEY_CUSTOM, .read = read_format, .required = true },
	{ .path = "source", .type = KEY_CUSTOM, .read = read_source, .required = true },
	L("endings", KEY_LIST, state_names,
	  .count_offset = offsetof(struct ckpt_layout, n_state_names)),
	L("iteration", KEY_LIST, state_words,
	  .count_offset = offsetof(struct ckpt_layout, n_state_words)),
	L("beside", KEY_TEXT, beside),
	L("bytes", KEY_INT, state_bytes, .min = 1, .max = 1LL << 40),
};

int model_state_load(struct ckpt_layout *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root =
		catalogue_open("checkpoints", "list of model state", "model-state", &path, err);
	struct reader r = {
		.errors = &errors, .keys = keys, .n_keys = ELEMENTSOF(keys), .bases = { ret }
	};

	if (!root)
		return -EINVAL;
	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(&errors, root, NULL, "list of model state: expected a mapping");
	return errors.n ? catalogue_fail(&errors, path, err) : 0;
}
