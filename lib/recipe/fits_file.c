/* See fits_file.h. */
#include "lib/recipe/fits_file.h"

#include <errno.h>

#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"
#include "lib/recipe/schema_scalar.h"

static void read_rocm(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct amdgpu_release *a = r->bases[k->base];
	char **words = NULL;
	size_t n = 0;

	value_list(r, k->path, v, &words, &n);
	if (n == 2 && image_release(words[0]) != MO_NONE && image_release(words[1]) != MO_NONE) {
		a->rocm_from = TAKE_PTR(words[0]);
		a->rocm_to = TAKE_PTR(words[1]);
	} else if (v->kind == YAML_LIST) {
		errors_at(r->errors, v, NULL,
			  "rocm: expected the oldest and the newest release, ['6.3', '7.2']");
	}
	for (size_t i = 0; i < n; i++)
		free(words[i]);
	free(words);
}

#define F(of, f, t) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct of, f), .required = true \
	}
static const struct key amdgpu_keys[] = {
	F(amdgpu_release, version, KEY_TEXT),
	F(amdgpu_release, release, KEY_TEXT),
	{ .path = "rocm", .type = KEY_CUSTOM, .read = read_rocm, .required = true },
};
static const struct key rdma_keys[] = {
	F(rdma_provider, driver, KEY_NAME),
	F(rdma_provider, provider, KEY_NAME),
};

/* One item, a mapping of these keys. */
static void read_one(struct reader *r, const struct ynode *v, const struct key *keys, size_t n,
		     void *to, const char *expected)
{
	struct reader inner = { .errors = r->errors, .keys = keys, .n_keys = n, .bases = { to } };

	if (v->kind == YAML_MAP)
		schema_read(&inner, "", v);
	else
		errors_at(r->errors, v, NULL, "expected %s", expected);
}

static void read_amdgpu(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct image_fits *f = r->bases[k->base];

	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
		read_one(r, v->items[i].value, amdgpu_keys, ELEMENTSOF(amdgpu_keys),
			 MO_ADD(f, amdgpu, &amdgpu_release_desc), "{version, release, rocm}");
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "amdgpu: expected a list");
}

static void read_rdma(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct image_fits *f = r->bases[k->base];

	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
		read_one(r, v->items[i].value, rdma_keys, ELEMENTSOF(rdma_keys),
			 MO_ADD(f, rdma, &rdma_provider_desc), "{driver, provider}");
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "rdma: expected a list");
}

static void read_file(const struct ynode *root, struct image_fits *ret,
		      struct recipe_errors *errors)
{
	static const struct key keys[] = {
		{ .path = "amdgpu", .type = KEY_CUSTOM, .read = read_amdgpu, .required = true },
		{ .path = "rdma", .type = KEY_CUSTOM, .read = read_rdma, .required = true },
	};
	struct reader r = {
		.errors = errors, .keys = keys, .n_keys = ELEMENTSOF(keys), .bases = { ret }
	};

	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(errors, root, NULL, "what fits images: expected a mapping");
}

int image_fits_parse(const char *text, size_t n, struct image_fits *ret,
		     struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "what fits images", errors);

	if (root)
		read_file(root, ret, errors);
	return recipe_errors_finish(errors);
}

int image_fits_load(struct image_fits *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root = catalogue_open("images", "what fits images", "fits", &path, err);

	if (!root)
		return -EINVAL;
	read_file(root, ret, &errors);
	return errors.n ? catalogue_fail(&errors, path, err) : 0;
}
