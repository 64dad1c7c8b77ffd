/* What moe-namespace is asked to make of a step's mount namespace: the file `box` in the step's
 * directory, written by moe-stepd before it starts the maker. Without the file the namespace has
 * the node's own files and devices. */
#pragma once
#include "lib/model/container.h"

/* The maker's descriptor of the image's directory with a shared lock on it (flock(2)), if the file
 * system knows locks: the supervisor takes it over, so that nobody removes the image of a step. */
#define BOX_IMAGE_FD 100

/* All paths absolute, on the node. */
struct box {
	char *root;       /* directory that becomes the root; NULL: the node's own stays */
	int writable;     /* of the root: enum container_writable */
	char *upper;      /* empty directory of the step for what is written; WRITABLE_DISK only */
	int64_t uid, gid; /* as whom the image and sources of mounts are opened */
	int64_t *groups;  /* the other groups of that user */
	size_t n_groups;
	char *user, *home; /* name of the account, and its directory, which is made if missing */
	/* of a /dev/shm of its own; 0: the node's */
	int64_t shm_bytes;
	struct container_mount *mounts; /* with a root only */
	size_t n_mounts;
	/* Without a root: directories of devices of which the ranks see only what `devices` names:
	 * /dev/dri, /dev/infiniband. A directory that the node lacks is none. */
	char **walled;
	size_t n_walled;
	/* Device files that exist in the box besides null, zero, full, random, urandom, tty and
	 * pts; a source that is not a device is refused. Without a root they count below `walled`
	 * only. */
	struct container_mount *devices;
	size_t n_devices;
};
extern const struct mo_desc box_desc;
MO_DEFINE_DONE(box)
