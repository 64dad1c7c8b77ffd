/* Whether a path is in checkpoint.dir by another name: through a link, or another mount of it. A
 * job is ended by the word that it is not, so that is said only of what is there and shares no
 * directory with checkpoint.dir on its way, while checkpoint.dir has nothing of that save. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/ckpt/scan.h"

/* LIKE: the same number on another device: a second mount may look so */
enum relation { APART, LIKE, SAME };

/* The nearest of path and those above it that is the directory; path is cut there. */
static enum relation find_above(char *path, const struct stat *dir)
{
	enum relation best = APART;
	struct stat st;

	for (;;) {
		char *slash = strrchr(path, '/');

		if (stat(path, &st) == 0 && st.st_ino == dir->st_ino && S_ISDIR(st.st_mode)) {
			if (st.st_dev == dir->st_dev)
				return SAME;
			best = LIKE;
		}
		if (!slash || mo_streq(path, "/"))
			return best;
		slash[slash == path] = 0;
	}
}

void place_compare(const struct command *order, struct scan_result *ret)
{
	_cleanup_(mo_freep) char *path = mo_path_clean(order->doubt);
	_cleanup_(mo_freep) char *real = path && *path == '/' ? realpath(path, NULL) : NULL;
	enum relation by_name, by_links;
	struct stat dir;

	if (!real || stat(order->dir, &dir) < 0)
		return; /* what is not there is known of nothing */
	by_name = find_above(path, &dir);
	by_links = find_above(real, &dir);
	if (by_name == SAME)
		mo_str_set(&ret->alias, path);
	if (by_name == SAME || by_links == SAME)
		mo_str_set(&ret->place, "same");
	else if (by_name == APART && by_links == APART && ret->n_items == 0)
		mo_str_set(&ret->place, "other");
}
