/* See container.h. */
#include "lib/model/container.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/model/image.h"

const char *const container_writable_names[_WRITABLE_N] = { "disk", "tmpfs", "no" };
const char *const container_user_names[_CONTAINER_USER_N] = { "self", "root" };

static const struct mo_field container_mount_fields[] = {
	MO_D(container_mount, source, MO_STR, "path on the node"),
	MO_D(container_mount, target, MO_STR, "path in the image"),
	MO_D(container_mount, readonly, MO_BOOL, "ranks cannot write there"),
};
const struct mo_desc container_mount_desc = MO_DESC(container_mount, container_mount_fields);

static const struct mo_field recipe_container_fields[] = {
	MO_D(recipe_container, image, MO_STR,
	     "dir:PATH, a directory of each node that holds an unpacked root; docker:NAME, "
	     "podman:NAME: an image of its store; squashfs:FILE; or what is brought "
	     "to the nodes: oci:DIR[:TAG], docker-archive:FILE, the name of a registry"),
	MO_D_ENUM(recipe_container, pull, image_pull_names,
		  "missing: what a node lacks is brought; never: it lies there already",
		  .omit = true),
	MO_D(recipe_container, auth_file, MO_STR,
	     "file of the user, on the nodes, with passwords of registries", .omit = true),
	MO_D(recipe_container, digest, MO_STR, "which image it is, since the job's first attempt",
	     .omit = true),
	MO_D_VEC(recipe_container, mounts, &container_mount_desc,
		 "what of the node is seen in the image", .omit = true),
	MO_D(recipe_container, home, MO_BOOL, "the user's home is one of them", .omit = true),
	MO_D(recipe_container, runtime, MO_STR,
	     "container runtime of the nodes that starts the container; null: none is needed",
	     .omit = true),
	MO_D_ENUM(recipe_container, user, container_user_names,
		  "who the ranks are there: the job's user, or root in the image only",
		  .omit = true),
	MO_D_ENUM(recipe_container, writable, container_writable_names,
		  "where files go that lie in no mount: a disk or memory, both until the step is "
		  "over, or nowhere"),
	MO_D(recipe_container, shm_bytes, MO_INT,
	     "size of /dev/shm, bytes; 0: the node's own, null: half of the node's memory",
	     .omit = true),
	MO_D_LIST(recipe_container, env_drop, MO_STRS,
		  "patterns of the image's variables that ranks do not get", .omit = true),
};
const struct mo_desc recipe_container_desc = MO_DESC(recipe_container, recipe_container_fields);

bool path_lies_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/');
}

const struct container_mount *container_mount_of(const struct recipe_container *c, const char *path)
{
	const struct container_mount *found = NULL;

	for (size_t i = 0; i < c->n_mounts; i++)
		if (path_lies_in(path, c->mounts[i].target) &&
		    (!found || path_lies_in(c->mounts[i].target, found->target)))
			found = &c->mounts[i];
	return found;
}

char *container_on_node(const struct recipe_container *c, const char *path)
{
	char *clean = mo_path_clean(path);
	const struct container_mount *m =
		c && clean && *clean == '/' ? container_mount_of(c, clean) : NULL;
	_cleanup_(mo_freep) char *in_image = m ? clean : NULL;

	if (!m)
		return clean;
	return mo_printf("%s%s", mo_streq(m->source, "/") ? "" : m->source,
			 in_image + strlen(m->target));
}
