/* The account of the job in the image, which does not know it: programs ask for the name and the
 * home of their uid. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/namespace/image.h"
#include "agent/namespace/mounts.h"

/* The image's /etc/passwd with the account before all others, so that its name and its uid are
 * found there first, whatever the image says of either. Nothing of a box that names no account. To
 * be called as the user. */
void account_read(const struct box *b, const struct image *image, struct mo_buf *ret);
/* That, to be placed on /etc/passwd. dir: of the step's own, out of everybody's sight. */
void account_copy(const struct mo_buf *passwd, const char *dir, struct mount *ret);
/* The image is the root. Where it lacks the account's home, an empty directory is made. */
void account_home(const struct box *b);
