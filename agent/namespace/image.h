/* The image on the node, and what it says about itself. Everything in it is read as the user of the
 * box: the image is the user's, or one that the user can reach. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/image_config.h"
#include "agent/core/stepd/runtime_image.h"
#include "lib/base/buf.h"

/* O_PATH descriptors of directories */
struct image {
	int root;    /* where there are layers: all of them, to be read only */
	int mount;   /* that has it, in no place yet; -1: none of ours */
	int bundle;  /* of an OCI bundle (config.json beside rootfs); -1: the image is the root */
	int *layers; /* of an image in a store, the highest first */
	size_t n_layers;
};
/* Of a store: as root, who owns it; which of its images may be used the agent has said. dir: where
 * something can be mounted in this namespace. The user's, then, is all that is read of it. */
void image_stack(const struct runtime_image *stored, const char *dir, struct image *ret);
/* As the user, but what was brought: that no user reaches, and it is opened as root. A shared lock
 * is on it, at BOX_IMAGE_FD, until this process ends. */
void image_open(const struct box *b, struct image *ret);
/* The same of what is mounted at, which is taken. */
void image_open_at(int mount, struct image *ret);
/* What overlayfs is given as its lower directories. Caller frees. */
char *image_lower(const struct image *image);
void image_close(struct image *image);
/* Box's user becomes the owner of the image's files: ends the maker unless they are his, or an
 * account of the node's own shares them, by a bundle that nobody else could have made. True: they
 * are not his. */
bool image_is_lent(const struct box *b, const struct image *image);
/* Reads a file of data below the directory. -ENOENT: there is none. What is no regular file, and
 * one that is larger than IMAGE_CONFIG_BYTES_MAX, ends the maker. */
int image_file(int dir, const char *name, struct mo_buf *ret);
/* A file that is not usable ends the maker: ranks would miss variables and fail in words that do
 * not name the cause. None: nothing is said. */
void image_read(const struct image *image, struct image_config *ret);
