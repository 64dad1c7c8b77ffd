/* The image on the node, and what it says about itself. Everything here is read as the user of the
 * box: the image is the user's, or one that the user can reach. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/image_config.h"
#include "lib/base/buf.h"

/* O_PATH descriptors of directories */
struct image {
	int root;
	int bundle; /* of an OCI bundle (config.json beside rootfs); -1: the image is the root */
};
void image_open(const struct box *b, struct image *ret);
/* A shared lock on what image_open() has opened, at BOX_IMAGE_FD until this process ends. */
void image_lock(const struct box *b, const struct image *image);
/* Reads a file of data below the directory. -ENOENT: there is none. What is no regular file, and
 * one that is larger than IMAGE_CONFIG_BYTES_MAX, ends the maker. */
int image_file(int dir, const char *name, struct mo_buf *ret);
/* A file that is not usable ends the maker: ranks would miss variables and fail in words that do
 * not name the cause. None: nothing is said. */
void image_read(const struct image *image, struct image_config *ret);
