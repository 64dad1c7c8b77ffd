/* See container_read.h. What each value means by itself is judged here; what it means beside
 * checkpoint.dir is a rule (rules_container.c). */
#include "lib/recipe/container_read.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/image.h"
#include "lib/model/reference.h"
#include "lib/model/runtime.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/schema_scalar.h"

static bool leads_up(const char *path)
{
	size_t n;

	for (; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.')
			return true;
	}
	return false;
}

/* Says what is wrong with a path of `what`. */
static bool path_good(struct reader *r, const char *what, const struct ynode *v, const char *path)
{
	if (path[0] != '/')
		errors_at(r->errors, v, "the nodes do not know your directory",
			  "%s: '%.200s' is no absolute path", what, path);
	else if (leads_up(path))
		errors_at(r->errors, v, "write out where it leads", "%s: '%.200s' has a part '..'",
			  what, path);
	else
		return true;
	return false;
}

static void read_dir(struct reader *r, const struct key *k, const struct ynode *v, const char *path)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];
	_cleanup_(mo_freep) char *clean = NULL;

	if (!path_good(r, k->path, v, path))
		return;
	clean = mo_path_clean(path);
	if (mo_streq(clean, "/"))
		errors_at(r->errors, v, "leave engine.container out for the node's own files",
			  "%s: / is no image", k->path);
	else
		c->image = mo_printf(IMAGE_DIR "%s", clean);
}

/* What lies on the nodes, or on what they share, and is unpacked from there. */
static void read_path(struct reader *r, const struct key *k, const struct ynode *v,
		      const char *text, const char *kind)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];

	if (path_good(r, k->path, v, text + strlen(kind)))
		c->image = mo_strdup(text);
}

/* Of a registry; the text stays as it was written. */
static void read_name(struct reader *r, const struct key *k, const struct ynode *v,
		      const char *text)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];
	size_t n = mo_starts_with(text, IMAGE_REGISTRY) ? strlen(IMAGE_REGISTRY) : 0;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(reference_done) struct reference name = { 0 };

	if (reference_read(text + n, NULL, 0, &name, &err) < 0)
		errors_at(r->errors, v,
			  "others are oci:DIR[:TAG], docker-archive:FILE, dir:PATH, "
			  "squashfs:FILE, docker:NAME and podman:NAME",
			  "%s: %s", k->path, mo_error_text(&err, IMAGE_REFUSED));
	else
		c->image = mo_strdup(text);
}

/* An image that a runtime of each node has. */
static void read_stored(struct reader *r, const struct key *k, const struct ynode *v,
			const char *text, const char *name)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];

	if (runtime_image_valid(name))
		c->image = mo_strdup(text);
	else
		errors_at(r->errors, v,
			  "write it as `docker images` shows it: docker:rocm/primus:v26.5",
			  "%s: '%.200s' names no image", k->path, text);
}

/* A file that each node has. */
static void read_squashfs(struct reader *r, const struct key *k, const struct ynode *v,
			  const char *path)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];

	if (path_good(r, k->path, v, path)) {
		_cleanup_(mo_freep) char *clean = mo_path_clean(path);
		c->image = mo_printf("squashfs:%s", clean);
	}
}

void key_read_image(struct reader *r, const struct key *k, const struct ynode *v)
{
	_cleanup_(mo_freep) char *text = NULL;
	const char *name;

	if (!value_text(r, k->path, v, &text))
		return;
	if (runtime_of_image(text, &name)) {
		read_stored(r, k, v, text, name);
		return;
	}
	if (text[0] == '/') {
		errors_at(r->errors, v, NULL,
			  "%s: '%.200s': a directory with an unpacked image is written dir:%.200s",
			  k->path, text, text);
		return;
	}
	if (mo_starts_with(text, "squashfs:")) {
		read_squashfs(r, k, v, text + strlen("squashfs:"));
		return;
	}
	switch (image_source(text)) {
	case IMAGE_OF_DIR: read_dir(r, k, v, text + strlen(IMAGE_DIR)); break;
	case IMAGE_OF_LAYOUT: read_path(r, k, v, text, IMAGE_LAYOUT); break;
	case IMAGE_OF_ARCHIVE: read_path(r, k, v, text, IMAGE_SAVED); break;
	default: read_name(r, k, v, text);
	}
}

/* /dev, /proc and /sys are the step's own, and the last says whose step it is. */
const char *container_made(const char *path)
{
	static const char *const made[] = { "/proc", "/sys", "/dev", "/run/moe-step" };

	for (size_t i = 0; i < ELEMENTSOF(made); i++)
		if (path_lies_in(path, made[i]))
			return made[i];
	return NULL;
}

static bool target_good(struct reader *r, const char *what, const struct ynode *v,
			const char *target)
{
	const char *made = container_made(target);

	if (mo_streq(target, "/"))
		errors_at(r->errors, v, "name a target in it: SOURCE:TARGET",
			  "%s: '%.200s' would cover the whole image", what, v->text);
	else if (made)
		errors_at(r->errors, v,
			  path_lies_in(target, "/dev/shm")
				  ? "the node's own is engine.container.shm: host"
				  : "leave it out, or name another target: SOURCE:TARGET",
			  "%s: '%.200s': %s is made for each step", what, v->text, made);
	return !made && !mo_streq(target, "/");
}

/* SOURCE[:TARGET][:ro]; false: it has another form. */
static bool mount_split(const char *text, struct container_mount *ret)
{
	size_t n = strcspn(text, ":");
	const char *rest = text[n] ? text + n + 1 : NULL, *target = text;
	size_t n_target = n;

	if (rest && !mo_streq(rest, "ro") && !mo_streq(rest, "rw")) {
		target = rest;
		n_target = strcspn(rest, ":");
		rest = rest[n_target] ? rest + n_target + 1 : NULL;
	}
	if (!n || !n_target || (rest && !mo_streq(rest, "ro") && !mo_streq(rest, "rw")))
		return false;
	ret->source = mo_strndup(text, n);
	ret->target = mo_strndup(target, n_target);
	ret->readonly = mo_streq(rest, "ro");
	return true;
}

static const struct container_mount *mount_at(const struct recipe_container *c, const char *target)
{
	for (size_t i = 0; i < c->n_mounts; i++)
		if (mo_streq(c->mounts[i].target, target))
			return &c->mounts[i];
	return NULL;
}

static void clean(char **path)
{
	char *made = mo_path_clean(*path);

	free(*path);
	*path = made;
}

static void read_mount(struct reader *r, const char *what, const struct ynode *v)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];
	struct container_mount m = { 0 };
	_cleanup_(mo_freep) char *text = NULL;
	const struct container_mount *other;

	if (v->kind != YAML_SCALAR) {
		value_wrong(r, what, v, "write it as SOURCE:TARGET", "a text SOURCE[:TARGET][:ro]");
		return;
	}
	if (!value_text(r, what, v, &text))
		return;
	if (!mount_split(text, &m)) {
		errors_at(r->errors, v, NULL,
			  "%s: expected SOURCE[:TARGET][:ro], such as /data:ro or /nfs/me:/work, "
			  "got '%.200s'",
			  what, text);
		return;
	}
	if (path_good(r, what, v, m.source) && path_good(r, what, v, m.target)) {
		clean(&m.source);
		clean(&m.target);
		other = mount_at(c, m.target);
		if (other)
			errors_at(r->errors, v, "name another target: SOURCE:TARGET",
				  "%s: %.200s is the target of %.200s already", what, m.target,
				  other->source);
		else if (target_good(r, what, v, m.target))
			mo_desc_copy(&container_mount_desc,
				     MO_ADD(c, mounts, &container_mount_desc), &m);
	}
	mo_desc_done(&container_mount_desc, &m);
}

void key_read_mounts(struct reader *r, const struct key *k, const struct ynode *v)
{
	_cleanup_(mo_freep) char *hint =
		v->kind == YAML_SCALAR ? mo_printf("write it as [%.200s]", v->text) : NULL;

	if (v->kind != YAML_LIST)
		value_wrong(r, k->path, v, hint, "a list of SOURCE[:TARGET][:ro]");
	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
		read_mount(r, k->path, v->items[i].value);
}

void key_read_runtime(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];
	const char *text = v->kind == YAML_SCALAR ? v->text : "";
	bool known = mo_streq(text, "builtin");

	mo_str_set(&c->runtime, NULL);
	for (size_t i = 0; runtime_names[i]; i++)
		if (mo_streq(text, runtime_names[i])) {
			mo_str_set(&c->runtime, text);
			known = true;
		}
	if (!known)
		value_wrong(r, k->path, v,
			    "without it moectl makes the container itself; a runtime only where a "
			    "site insists on it",
			    "builtin, docker or podman");
}

void key_read_shm(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_container *c = r->bases[BASE_CONTAINER];
	int64_t bytes;

	if (v->kind == YAML_SCALAR && mo_streq(v->text, "host"))
		c->shm_bytes = 0;
	else if (v->kind == YAML_SCALAR && mo_parse_size(v->text, &bytes) == 0 && bytes > 0)
		c->shm_bytes = bytes;
	else
		value_wrong(r, k->path, v, "without it /dev/shm holds half of the node's memory",
			    "a size such as 64G, or host");
}

void key_read_container(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe_engine *e = &((struct recipe *)r->bases[BASE_RECIPE])->engine;
	bool none =
		v->kind == YAML_SCALAR && (mo_streq(v->text, "none") || mo_streq(v->text, "false"));

	mo_desc_free(&recipe_container_desc, e->container);
	e->container = none ? NULL : mo_desc_new(&recipe_container_desc);
	r->bases[BASE_CONTAINER] = e->container;
	if (none)
		return;
	schema_defaults(r, "engine.container.");
	if (v->kind == YAML_MAP)
		schema_read(r, "engine.container.", v);
	else if (v->kind == YAML_SCALAR)
		key_read_image(r, k, v);
	else
		value_wrong(r, k->path, v, NULL, "an image, or a mapping with image and mounts");
}
