/* engine.container of a recipe: the image whose files the ranks see, and what of the node they see
 * beside it. A plain value; read by lib/recipe, sent with the launch, obeyed by moe-stepd. */
#pragma once
#include "lib/base/desc.h"

/* Where what ranks write outside of every mount goes: a directory on the node's disk or memory,
 * both gone with the step, or nowhere. */
enum container_writable { WRITABLE_DISK, WRITABLE_TMPFS, WRITABLE_NO, _WRITABLE_N };
extern const char *const container_writable_names[_WRITABLE_N];

/* absolute paths without `..`; source on the node, target in the image */
struct container_mount {
	char *source, *target;
	bool readonly;
};
extern const struct mo_desc container_mount_desc;

/* Who the ranks are in the image: the job's user, or root there and the job's user on the node. */
enum container_user { CONTAINER_SELF, CONTAINER_ROOT, _CONTAINER_USER_N };
extern const char *const container_user_names[_CONTAINER_USER_N];

struct recipe_container {
	/* dir:PATH, a directory on each node that holds an unpacked root, or an OCI bundle; one in
	 * the store of a runtime: see runtime.h; squashfs:FILE; or what is brought to the nodes
	 * (enum image_source) */
	char *image;
	int pull;        /* enum image_pull */
	char *auth_file; /* user's file with passwords of registries, on the nodes; NULL: none */
	/* of a launch: which image that is; NULL: it lies in a directory of the node's */
	char *digest;
	struct container_mount *mounts;
	size_t n_mounts;
	bool home; /* the user's home is there too */
	/* the node's container runtime that starts a container of the image, which the ranks enter
	 * (enum of runtime_names); NULL: moe-namespace makes one, without a runtime */
	char *runtime;
	int user;          /* enum container_user; -1, of an earlier version: self */
	int writable;      /* enum container_writable */
	int64_t shm_bytes; /* size of its own /dev/shm; 0: the node's, MO_NONE: half the memory */
	char **env_drop;   /* patterns of the image's variables that ranks do not get */
	size_t n_env_drop;
};
extern const struct mo_desc recipe_container_desc;

/* Is the cleaned path `dir`, or something in it? */
bool path_lies_in(const char *path, const char *dir);
/* Where the node has what ranks see as `path`, cleaned: elsewhere when a mount has it there, else
 * at the same path, also without an image (c NULL). NULL for NULL; the caller frees. */
char *container_on_node(const struct recipe_container *c, const char *path);
/* The mount that a path in the image is on; NULL: it is the image's own. */
const struct container_mount *container_mount_of(const struct recipe_container *c,
						 const char *path);
