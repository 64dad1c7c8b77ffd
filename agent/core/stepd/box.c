/* See box.h. */
#include "agent/core/stepd/box.h"

const char *const box_users_names[_BOX_USERS_N] = { "node", "root", "self" };

static const struct mo_field box_fields[] = {
	MO_D(box, root, MO_STR, "directory that becomes the root; null: the node's own stays"),
	MO_D(box, runtime, MO_STR, "runtime that has the image in its store; null: none",
	     .omit = true),
	MO_D(box, squashfs, MO_BOOL, "the root is a file with a squashfs in it", .omit = true),
	MO_D(box, brought, MO_BOOL,
	     "the root is where only the node's own account for images enters", .omit = true),
	MO_D(box, stored, MO_STR, "its name there", .omit = true),
	MO_D(box, digest, MO_STR, "digest of the one that is meant; null: any", .omit = true),
	MO_D(box, step, MO_STR, "id of the step that it is kept for", .omit = true),
	MO_D(box, holder, MO_BOOL, "that runtime starts a container of the image", .omit = true),
	MO_D_ENUM(box, writable, container_writable_names, "where files of no mount go"),
	MO_D(box, upper, MO_STR, "directory for what is written there", .omit = true),
	MO_D(box, uid, MO_INT, "user who opens the image and the sources of mounts"),
	MO_D(box, gid, MO_INT, "group who does"),
	MO_D_LIST(box, groups, MO_INTS, "the other groups of that user"),
	MO_D_ENUM(box, users, box_users_names,
		  "accounts in it: the node's, or that user alone, as root or under its number",
		  .omit = true),
	MO_D(box, shared_below, MO_INT, "least uid whose images are its own; null: 1",
	     .omit = true),
	MO_D(box, user, MO_STR, "name of that account", .omit = true),
	MO_D(box, home, MO_STR, "its directory, made where the image lacks it", .omit = true),
	MO_D(box, shm_bytes, MO_INT, "size of a /dev/shm of its own; 0: the node's"),
	MO_D_VEC(box, mounts, &container_mount_desc, "what of the node is seen"),
	MO_D_LIST(box, walled, MO_STRS, "directories in which only `devices` are seen"),
	MO_D_VEC(box, devices, &container_mount_desc, "device files that are seen"),
};
const struct mo_desc box_desc = MO_DESC(box, box_fields);
