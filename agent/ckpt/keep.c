/* The last whole save of a script that writes over it, in KEPT_DIR of the directory in which its
 * saves lie:
 *   next/NAME    a copy that is being made
 *   whole/NAME   the last whole one; it takes the place of the one before in one step where the
 *                file system can exchange names
 *   before/NAME  else, for a moment, that one
 *   past/NAME    what was whole when a job was ordered to start afresh: no job takes it by itself
 * A save is whole when its files are as they were at the pass before, and its format says so (the
 * closing record of torch.save). The copy counts when they still are afterwards. The job's own
 * files are only read; when the copy is put back, what lies in its place gets another name, and
 * nothing is removed. */
#include "agent/ckpt/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"

#define PASS_MS 1000
#define NOTIFY_FD 3
#define NAMES_MAX 100000
#define TORN_MAX 1000 /* names tried for what is moved out of the way */

/* By their format alone. */
static const struct ckpt_question question = {
	.level = LEVEL_SIZES,
	.world = MO_NONE,
	.tracker = TRACKER_NONE,
};

struct keeper {
	const struct ckpt_layout *layout;
	struct ckpt_rules *rules;
	char *dir;
	/* digests: what lay there at the pass before; what was copied, or is none of this attempt's
	 * saves */
	char *last, *retained;
	int reported; /* why no copy could be kept, as last reported */
};

/* ---- passes ---- */

/* The newest of what the layout names; name NULL = there is none. */
static void newest(int dir_fd, const struct ckpt_rules *rules, struct ckpt_entry *ret)
{
	_cleanup_(directory_close) DIR *d = directory_open(dir_fd, ".", false);
	int64_t iteration, mtime_ns = INT64_MIN;
	size_t seen = 0;
	bool unfinished;

	for (struct dirent *de; d && (de = readdir(d)) && seen++ < NAMES_MAX;) {
		struct stat st;

		if (de->d_name[0] == '.' ||
		    !ckpt_is_entry(rules, de->d_name, &iteration, &unfinished) ||
		    fstatat(dir_fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		int64_t ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;

		if ((!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) || ns <= mtime_ns)
			continue;
		mtime_ns = ns;
		mo_str_set(&ret->name, de->d_name);
	}
}

/* The digest of its files as they lie there (caller frees). read: what is in them too. */
static char *digest_of(const struct keeper *k, int dir_fd, const char *name, bool read,
		       struct ckpt_entry *e)
{
	*e = (struct ckpt_entry){ .name = mo_strdup(name) };
	ckpt_entry_read(dir_fd, k->layout, k->rules, LEVEL_SIZES, read, read, e);
	return e->n_files > 0 && !e->too_many ? manifest_digest(e->files, e->n_files) : NULL;
}

static bool same_still(const struct keeper *k, int dir_fd, const char *name)
{
	struct ckpt_entry e;
	_cleanup_(mo_freep) char *digest = digest_of(k, dir_fd, name, false, &e);

	ckpt_entry_done(&e);
	return mo_streq(digest, k->last);
}

/* ---- keeping ---- */

static int retained_open(int dir_fd, bool make)
{
	if (make)
		mkdirat(dir_fd, KEPT_DIR, 0777);
	int fd = openat(dir_fd, KEPT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* next becomes whole. Whoever looks finds the copy under whole, or under before. */
static int take_next(int retained)
{
	if (renameat2(retained, "next", retained, "whole", RENAME_EXCHANGE) < 0) {
		tree_remove(retained, "before");
		renameat(retained, "whole", retained, "before");
		if (renameat(retained, "next", retained, "whole") < 0)
			return -errno;
	}
	int r = fsync(retained) < 0 ? -errno : 0;

	tree_remove(retained, "next");
	tree_remove(retained, "before");
	return r;
}

static int keep_copy(const struct keeper *k, int dir_fd, const struct ckpt_entry *e)
{
	_cleanup_(mo_closep) int retained = retained_open(dir_fd, true);
	int r = retained;

	if (retained < 0)
		return r;
	tree_remove(retained, "next");
	if (mkdirat(retained, "next", 0777) < 0)
		return -errno;
	_cleanup_(mo_closep) int next =
		openat(retained, "next", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	r = next < 0 ? -errno : copy_entry(dir_fd, e, next);
	if (r == 0 && !same_still(k, dir_fd, e->name))
		r = -EBUSY;
	if (r == 0)
		return take_next(retained);
	tree_remove(retained, "next");
	return r;
}

static void announce(struct keeper *k, const struct ckpt_entry *e, int r)
{
	const char *cause = r == -ENOSPC ? "there is no room for one" : strerror(-r);
	_cleanup_(mo_freep) char *why =
		r == 0 || r == k->reported ? mo_strdup("")
					   : mo_printf("STATUS=no copy of it is kept: %s\n", cause);
	_cleanup_(mo_freep) char *text = mo_printf("CHECKPOINT=%s/%s\nITERATION=%lld\n%s", k->dir,
						   e->name, (long long)e->iteration, why);

	k->reported = r;
	(void)send(NOTIFY_FD, text, strlen(text), MSG_NOSIGNAL);
}

static void pass(struct keeper *k)
{
	_cleanup_(mo_closep) int dir_fd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ckpt_entry found = { 0 }, e = { 0 };

	if (dir_fd < 0)
		return;
	newest(dir_fd, k->rules, &found);
	_cleanup_(mo_freep) char *digest =
		found.name ? digest_of(k, dir_fd, found.name, false, &e) : NULL;
	bool still = digest && mo_streq(digest, k->last);

	ckpt_entry_done(&e);
	mo_str_set(&k->last, digest);
	if (still && !mo_streq(digest, k->retained)) {
		_cleanup_(mo_freep) char *again = digest_of(k, dir_fd, found.name, true, &e);
		_cleanup_(mo_freep) char *torn = ckpt_judge(k->rules, &e, &question);
		int r = !torn && mo_streq(again, digest) ? keep_copy(k, dir_fd, &e) : -EBUSY;

		if (r != -EBUSY) {
			mo_str_set(&k->retained, digest);
			announce(k, &e, r);
		}
		ckpt_entry_done(&e);
	}
	ckpt_entry_done(&found);
}

/* What lies there when the ranks begin is no save of theirs. A fresh start leaves it behind, and
 * the copy of it too. */
static void begin(struct keeper *k, bool resumed)
{
	_cleanup_(mo_closep) int dir_fd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(mo_closep) int retained = dir_fd < 0 ? -1 : retained_open(dir_fd, false);
	struct ckpt_entry found = { 0 }, e = { 0 };

	if (dir_fd < 0)
		return;
	newest(dir_fd, k->rules, &found);
	k->last = found.name ? digest_of(k, dir_fd, found.name, true, &e) : NULL;
	k->retained = mo_strdup(k->last);
	if (resumed && k->last)
		(void)keep_copy(k, dir_fd, &e); /* without one it is as before */
	if (!resumed && retained >= 0) {
		tree_remove(retained, "past");
		renameat(retained, "whole", retained, "past");
	}
	ckpt_entry_done(&e);
	ckpt_entry_done(&found);
}

void keep_until_end(const struct command *order, bool resumed)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	struct keeper k = { .layout = order->layout };

	if (ckpt_rules_new(order->layout, &k.rules, NULL) < 0)
		return;
	k.dir = order->layout->subdir ? mo_path(order->dir, "%s", order->layout->subdir)
				      : mo_strdup(order->dir);
	begin(&k, resumed);
	while (poll(&p, 1, PASS_MS) == 0)
		pass(&k);
	ckpt_rules_free(k.rules);
	free(k.dir);
	free(k.last);
	free(k.retained);
}

/* ---- putting back ---- */

/* Gives what lies under the name another one (*ret: which, NULL = nothing lies there). */
static int move_aside(int dir_fd, const char *name, char **ret)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	for (int i = 1; i <= TORN_MAX; i++) {
		_cleanup_(mo_freep) char *aside = mo_printf("%s.torn-%d", name, i);

		if (fstatat(dir_fd, aside, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (renameat(dir_fd, name, dir_fd, aside) < 0)
			return -errno;
		*ret = TAKE_PTR(aside);
		return 0;
	}
	return -EEXIST;
}

/* The copy stays: a copy of it goes back. */
static int put_back(int dir_fd, int retained, int from, const struct ckpt_entry *e,
		    char **ret_aside)
{
	tree_remove(retained, "next");
	if (mkdirat(retained, "next", 0777) < 0)
		return -errno;
	_cleanup_(mo_closep) int next =
		openat(retained, "next", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = next < 0 ? -errno : copy_entry(from, e, next);

	if (r == 0)
		r = move_aside(dir_fd, e->name, ret_aside);
	if (r == 0 && (renameat(next, e->name, dir_fd, e->name) < 0 || fsync(dir_fd) < 0))
		r = -errno;
	tree_remove(retained, "next");
	return r;
}

char *keep_put_back(int dir_fd, const struct ckpt_layout *layout, const struct ckpt_rules *rules)
{
	static const char *const slots[] = { "whole", "before" };
	_cleanup_(mo_closep) int retained = retained_open(dir_fd, false);
	char *done = NULL;

	for (size_t i = 0; retained >= 0 && i < ELEMENTSOF(slots) && !done; i++) {
		_cleanup_(mo_closep) int slot =
			openat(retained, slots[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		_cleanup_(mo_freep) char *torn = NULL, *aside = NULL;
		struct ckpt_entry e = { 0 };

		if (slot < 0)
			continue;
		newest(slot, rules, &e);
		if (e.name)
			ckpt_entry_read(slot, layout, rules, LEVEL_SIZES, true, true, &e);
		torn = e.name ? ckpt_judge(rules, &e, &question) : mo_strdup("empty");
		if (e.name && !torn && put_back(dir_fd, retained, slot, &e, &aside) == 0)
			done = aside ? mo_printf("put back from its copy in " KEPT_DIR
						 "; what a cut save left is %s",
						 aside)
				     : mo_strdup("put back from its copy in " KEPT_DIR);
		ckpt_entry_done(&e);
	}
	return done;
}
