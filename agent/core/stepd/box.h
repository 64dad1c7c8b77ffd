/* What moe-namespace is asked to make of a step's mount namespace: the file `box` in the step's
 * directory, written by moe-stepd before it starts the maker. Without the file the namespace has
 * the node's own files and devices. */
#pragma once
#include "lib/model/container.h"

/* The maker's descriptor of the image's directory with a shared lock on it (flock(2)), if the file
 * system knows locks: the supervisor takes it over, so that nobody removes the image of a step. */
#define BOX_IMAGE_FD 100
/* Of a box with a holder: the maker's pidfd of the container's process. */
#define BOX_HOLDER_FD 101
/* In the step's directory, then: the FIFO that this process waits on, and that the supervisor alone
 * holds open. */
#define BOX_LIFE "life"

/* Who is who in the box. The others: a user namespace in which only the user of the box is, as root
 * or under the number that it has on the node. */
enum box_users { BOX_NODE, BOX_ROOT, BOX_SELF, _BOX_USERS_N };
extern const char *const box_users_names[_BOX_USERS_N];

/* All paths absolute, on the node. */
struct box {
	/* directory that becomes the root, or with a runtime the image as the recipe names it;
	 * NULL: the node's own stays */
	char *root;
	/* whose store the image is in, by its name in config/runtimes; NULL: it is a directory */
	char *runtime;
	bool squashfs;       /* root is a file that holds one */
	bool brought;        /* root is for all jobs, below a directory that no user enters */
	char *stored, *step; /* with a runtime: its name of the image, and the step's id */
	char *digest;        /* with a runtime: of the image that is meant; NULL: of any */
	bool holder;         /* the runtime starts a container of it, whose root becomes the root */
	int writable;        /* of the root: enum container_writable */
	char *upper;      /* empty directory of the step for what is written; WRITABLE_DISK only */
	int64_t uid, gid; /* as whom the image and sources of mounts are opened */
	int64_t *groups;  /* the other groups of that user */
	size_t n_groups;
	int users; /* enum box_users; -1: BOX_NODE */
	/* BOX_ROOT: images of accounts with lower uids are for everybody, and may become the
	 * user's; MO_NONE: root's only */
	int64_t shared_below;
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
