/* See runtime_file.h. What a runtime of another version is asked needs no new program. */
#include "lib/recipe/runtime_file.h"

#include <errno.h>

#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"
#include "lib/recipe/schema_scalar.h"

#define WHAT "runtime"
#define WORDS_MAX 64

/* What is known to a command: key.max. */
enum { KNOWS_IMAGE = 1, KNOWS_ID = 2, KNOWS_STEP = 4, KNOWS_PLACES = 8 };

static void read_command(struct reader *r, const struct key *k, const struct ynode *v)
{
	const struct runtime_words known = { .image = k->max & KNOWS_IMAGE ? "" : NULL,
					     .id = k->max & KNOWS_ID ? "" : NULL,
					     .step = k->max & KNOWS_STEP ? "" : NULL,
					     .dir = k->max & KNOWS_PLACES ? "" : NULL,
					     .hold = k->max & KNOWS_PLACES ? "" : NULL };
	char ***to = (char ***)((char *)r->bases[k->base] + k->offset);
	size_t *n = (size_t *)((char *)r->bases[k->base] + k->count_offset);

	if (v->kind != YAML_LIST || v->n == 0 || v->n > WORDS_MAX) {
		value_wrong(r, k->path, v, "such as [podman, ps]", "the words of a command");
		return;
	}
	value_list(r, k->path, v, to, n);
	for (size_t i = 0; i < *n && i < v->n; i++) {
		_cleanup_(mo_freep) char *problem = runtime_word_problem((*to)[i], &known);

		if (problem)
			errors_at(r->errors, v->items[i].value, NULL, "%s: %s", k->path, problem);
	}
}

#define COMMAND(p, f, known, must) \
	{ \
		.path = (p), .type = KEY_CUSTOM, .read = read_command, .required = (must), \
		.offset = offsetof(struct runtime, f), \
		.count_offset = offsetof(struct runtime, n_##f), .max = (known) \
	}
static void read_version(struct reader *r, const struct key *k, const struct ynode *v)
{
	int64_t version;

	value_int(r, k->path, v, 1, 1, &version);
}

static const struct key file_keys[] = {
	{ .path = "runtime", .type = KEY_CUSTOM, .read = read_version, .required = true },
	{ .path = "name",
	  .type = KEY_NAME,
	  .offset = offsetof(struct runtime, name),
	  .required = true },
	COMMAND("image", image, KNOWS_IMAGE, true),
	COMMAND("keep", keep, KNOWS_IMAGE | KNOWS_ID | KNOWS_STEP, true),
	COMMAND("kept", kept, 0, true),
	COMMAND("release", release, KNOWS_STEP, true),
	COMMAND("start", start, KNOWS_IMAGE | KNOWS_ID | KNOWS_STEP | KNOWS_PLACES, false),
};

static void read_file(const struct ynode *root, struct runtime *ret, struct recipe_errors *errors)
{
	struct reader r = { .errors = errors,
			    .keys = file_keys,
			    .n_keys = ELEMENTSOF(file_keys),
			    .bases = { ret } };

	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(errors, root, NULL, WHAT ": expected a mapping");
}

int runtime_parse(const char *text, size_t n, struct runtime *ret, struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, WHAT, errors);

	if (root)
		read_file(root, ret, errors);
	return recipe_errors_finish(errors);
}

int runtime_load(const char *name, struct runtime *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root = catalogue_open("runtimes", WHAT, name, &path, err);

	if (!root)
		return -EINVAL;
	read_file(root, ret, &errors);
	if (errors.n || recipe_errors_finish(&errors) < 0)
		return catalogue_fail(&errors, path, err);
	if (!mo_streq(ret->name, name))
		return mo_error_set(err, -EINVAL, "%s: name: it is %s, and the file is that of %s",
				    path, ret->name, name);
	return 0;
}
