/* Models of the catalogue: config/models/NAME.yaml. What they say is read by the keys of a
 * recipe's own model (keys.c), whose `model: NAME` reads such a file. */
#include "lib/recipe/model_file.h"

#include <errno.h>

#include "lib/base/desc.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/keys.h"

struct model_file {
	char *name, *title, *source;
	double published_b;
};

static void read_file_model(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_model **ret = r->arg;

	if (v->kind == YAML_MAP)
		*ret = model_read(v, r->errors);
	else
		errors_at(r->errors, v, NULL, "model: expected a mapping");
}

static const struct key model_file_keys[] = {
	{ .path = "name",
	  .type = KEY_NAME,
	  .offset = offsetof(struct model_file, name),
	  .required = true },
	{ .path = "title", .type = KEY_TEXT, .offset = offsetof(struct model_file, title) },
	{ .path = "source",
	  .type = KEY_TEXT,
	  .offset = offsetof(struct model_file, source),
	  .required = true },
	{ .path = "published_b",
	  .type = KEY_REAL,
	  .offset = offsetof(struct model_file, published_b),
	  .max = 1000000 },
	{ .path = "model", .type = KEY_CUSTOM, .read = read_file_model, .required = true },
};

int model_load(const char *name, struct recipe_model *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root = catalogue_open("models", "model", name, &path, err);
	struct model_file file = { 0 };
	struct recipe_model *model = NULL;
	struct reader r = { .errors = &errors,
			    .keys = model_file_keys,
			    .n_keys = ELEMENTSOF(model_file_keys),
			    .bases = { &file },
			    .arg = &model };

	if (!root)
		return -EINVAL;
	schema_read(&r, "", root);
	free(file.name);
	free(file.title);
	free(file.source);
	if (errors.n) {
		mo_desc_free(&recipe_model_desc, model);
		return catalogue_fail(&errors, path, err);
	}
	mo_str_set(&model->name, name);
	mo_desc_done(&recipe_model_desc, ret);
	*ret = *model;
	free(model);
	return 0;
}
