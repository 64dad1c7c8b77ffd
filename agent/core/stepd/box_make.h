/* The device files of a step's namespace, from its spool entry; and whether the namespace that was
 * made has them, and no others. Pure; called by agent/stepd. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/spool.h"

/* A device file that is there, on the node or in the namespace. */
struct device_file {
	char *path;
	uint64_t number; /* st_rdev */
};
void device_files_clear(struct device_file **files, size_t *n);

/* Directories whose files are the node's GPUs and network cards, as a rank names them; up to a
 * NULL. */
extern const char *const device_dirs[];
/* Directory on the node of one of those, caller frees. */
char *box_device_dir(const struct spool *s, const char *dir);

/* Fills walled and devices of ret. here: device files of the node that a rank may need, by their
 * paths on the node. With ret->root: all of `here` but what others' walls hide; without: only what
 * the walls of this step need. */
void box_devices(const struct spool *s, const struct device_file *here, size_t n, struct box *ret);
/* Anything is asked for that a namespace does not have by itself. */
bool box_asks(const struct box *b);
/* inside: what the namespace has in the walled directories; here: as for box_devices(). Why it is
 * not what was asked for; NULL: it is. Caller frees. */
char *box_judge(const struct box *b, const struct device_file *inside, size_t n_inside,
		const struct device_file *here, size_t n_here);
