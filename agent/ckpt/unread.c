/* What lies in a checkpoint directory, looks like a model's state, and is none of the
 * checkpoints that the layout knows: a script's own ckpt.pt, or an entry without the marker by
 * which the layout knows whole ones; a checkpoint where the engine does not look (above the
 * directory that it adds); a directory that is one checkpoint itself. A job never starts afresh
 * over such files without a word. Only names and sizes are read; links are not followed,
 * and what moectl itself keeps there does not count. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"

#define OWN ".moe-" /* names of what moectl keeps there */
#define NAMES_MAX 100000
#define STATE_DEPTH 2 /* directories below the name that stands in the directory */

struct search {
	const struct ckpt_layout *layout;
	const struct ckpt_rules *rules;
	struct scan_result *ret;
	size_t n_names;
	const char *dir;     /* which is read */
	bool entries, named; /* it is where entries lie; it is not the job's own */
};

static int64_t mtime_us(const struct stat *st)
{
	/* times are reported in ms */
	return st->st_mtim.tv_sec * 1000000LL + st->st_mtim.tv_nsec / 1000000 * 1000;
}

/* By its name and kind, as the directory tells them: a data set of a million files costs no stat
 * at each. */
static bool may_be_state(const struct search *s, const struct dirent *de)
{
	return de->d_type == DT_DIR || de->d_type == DT_UNKNOWN ||
	       ckpt_looks_like_state(s->layout, de->d_name, INT64_MAX);
}

/* Adds up what looks like state below the directory. */
static void sum(struct search *s, int at, const char *name, int depth, struct unread_state *u)
{
	_cleanup_(directory_close) DIR *d = directory_open(at, name, false);

	for (struct dirent *de; d && (de = readdir(d)) && s->n_names++ < NAMES_MAX;) {
		struct stat st;

		if (de->d_name[0] == '.' || !may_be_state(s, de) ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < STATE_DEPTH)
			sum(s, dirfd(d), de->d_name, depth + 1, u);
		if (!S_ISREG(st.st_mode) ||
		    !ckpt_looks_like_state(s->layout, de->d_name, st.st_size))
			continue;
		u->bytes += st.st_size;
		u->saved_at = MO_MAX(u->saved_at, mtime_us(&st));
	}
}

/* Newest first; of those beyond MO_UNREAD_MAX only their number is reported. */
static void add(struct search *s, const struct unread_state *u)
{
	struct scan_result *r = s->ret;
	size_t at = r->n_unread;

	while (at > 0 && r->unread[at - 1].saved_at < u->saved_at)
		at--;
	if (r->n_unread == MO_UNREAD_MAX) {
		r->unread_more = MO_MAX(r->unread_more, 0) + 1;
		if (at == MO_UNREAD_MAX)
			return;
		mo_vec_remove(&unread_state_desc, r->unread, &r->n_unread, MO_UNREAD_MAX - 1);
	}
	MO_ADD(r, unread, &unread_state_desc);
	struct unread_state empty = r->unread[r->n_unread - 1];

	memmove(&r->unread[at + 1], &r->unread[at], (r->n_unread - 1 - at) * sizeof(*r->unread));
	r->unread[at] = empty;
	mo_desc_copy(&unread_state_desc, &r->unread[at], u);
}

/* "a|b": one of them is there, and is not empty. */
static bool has_one_of(int at, const char *names)
{
	bool has = false;

	for (const char *n = names; n && !has; n = strchr(n, '|') ? strchr(n, '|') + 1 : NULL) {
		_cleanup_(mo_freep) char *name = mo_strndup(n, strcspn(n, "|"));
		_cleanup_(mo_closep) int fd = file_open(at, name);
		struct stat st;

		has = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0;
	}
	return has;
}

static bool has_markers(const struct search *s, int at)
{
	size_t n = 0;

	while (n < s->layout->n_markers && has_one_of(at, s->layout->markers[n]))
		n++;
	return n > 0 && n == s->layout->n_markers;
}

/* A file that only a checkpoint has, in the directory or in those below it that are no entries.
 * below: the name and "/" of the one that is read, NULL: the directory itself. */
static bool has_part(struct search *s, int at, const char *below, bool in_entry)
{
	_cleanup_(mo_freep) char *name = below ? mo_strndup(below, strlen(below) - 1) : NULL;
	_cleanup_(directory_close) DIR *d = directory_open(at, name ? name : ".", false);
	bool has = false, unfinished;
	int64_t iteration;

	for (struct dirent *de; d && !has && (de = readdir(d)) && s->n_names++ < NAMES_MAX;) {
		_cleanup_(mo_freep) char *path = mo_printf("%s%s", below ? below : "", de->d_name);
		_cleanup_(mo_freep) char *deeper = mo_printf("%s/", de->d_name);
		struct stat st;

		if (mo_streq(de->d_name, ".") || mo_streq(de->d_name, ".."))
			continue;
		if (ckpt_is_part(s->rules, path, in_entry))
			has = fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			      S_ISREG(st.st_mode) && st.st_size > 0;
		else if (!below && (de->d_type == DT_DIR || de->d_type == DT_UNKNOWN) &&
			 !ckpt_is_entry(s->rules, de->d_name, &iteration, &unfinished))
			has = has_part(s, at, deeper, in_entry);
	}
	return has;
}

/* The directory is one checkpoint, whole or not, as far as names tell. A layout whose marker is a
 * word between moectl and a script knows no other's. */
static bool is_one(struct search *s, int at, const char *name, bool in_entry)
{
	_cleanup_(mo_closep) int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || s->layout->announced_is_complete || s->layout->given)
		return false;
	return has_markers(s, fd) || has_part(s, fd, NULL, in_entry);
}

/* `at`/name is one: all that is in it. shown: its name in `where`. */
static void add_one(struct search *s, int at, const char *name, const char *shown,
		    int64_t iteration, const char *where)
{
	struct ckpt_entry e = { .name = mo_strdup(name) };
	struct unread_state u = { .name = mo_printf("%s/", shown),
				  .iteration = iteration,
				  .where = mo_strdup(where) };

	ckpt_entry_read(at, s->layout, s->rules, LEVEL_SIZES, false, false, &e);
	for (size_t i = 0; i < e.n_files; i++) {
		u.bytes += e.files[i].bytes;
		u.saved_at = MO_MAX(u.saved_at, e.files[i].mtime_ns / 1000000 * 1000);
	}
	add(s, &u);
	ckpt_entry_done(&e);
	free(u.name);
	free(u.where);
}

/* Whether the directory itself is one: then it is reported with the one above it. */
static bool judge_itself(struct search *s, const char *dir)
{
	_cleanup_(mo_freep) char *where = mo_path_clean(dir);
	char *slash = where ? strrchr(where, '/') : NULL;
	_cleanup_(mo_freep) char *name = slash && slash[1] ? mo_strdup(slash + 1) : NULL;
	int64_t iteration = MO_NONE;
	bool unfinished, entry = name && ckpt_is_entry(s->rules, name, &iteration, &unfinished);
	_cleanup_(mo_closep) int fd = name ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	bool is = fd >= 0 && is_one(s, fd, ".", entry);

	s->n_names = 0;
	if (!is)
		return false;
	slash[slash == where] = 0;
	add_one(s, fd, ".", name, entry ? iteration : MO_NONE, where);
	return true;
}

/* iteration: the name is one of an entry, MO_NONE: it is not. */
static void judge_one(struct search *s, int at, const char *name, int64_t iteration)
{
	struct unread_state u = { .bytes = 0, .saved_at = 0, .iteration = iteration };
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (!s->entries && iteration != MO_NONE && S_ISDIR(st.st_mode) &&
	    is_one(s, at, name, true)) {
		add_one(s, at, name, name, iteration, s->dir);
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		sum(s, at, name, 0, &u);
		u.name = mo_printf("%s/", name);
	} else if (S_ISREG(st.st_mode) && ckpt_looks_like_state(s->layout, name, st.st_size)) {
		u = (struct unread_state){ .name = mo_strdup(name),
					   .bytes = st.st_size,
					   .saved_at = mtime_us(&st),
					   .iteration = iteration };
	}
	u.where = s->named ? mo_strdup(s->dir) : NULL;
	if (u.bytes > 0)
		add(s, &u);
	free(u.name);
	free(u.where);
}

/* Entries were judged already: only those of a layout whose marker is a word between moectl and
 * the script may be whole all the same, when there is no marker. */
static bool unmarked(const struct search *s, int at, const char *name, int64_t iteration)
{
	_cleanup_(mo_closep) int entry =
		openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (size_t i = 0; i < s->ret->n_items; i++)
		if (s->ret->items[i].iteration == iteration && s->ret->items[i].complete)
			return false;
	for (size_t i = 0; entry >= 0 && i < s->layout->n_markers; i++) {
		int fd = file_open(entry, s->layout->markers[i]);

		if (fd >= 0)
			close(fd);
		if (fd >= 0)
			return false;
	}
	return s->layout->announced_is_complete;
}

/* Links and other kinds, and what cannot be read or lies too deep, may be anything. */
static bool only_beside(int at, const char *name, int depth, const struct ckpt_rules *rules,
			size_t *n_files)
{
	_cleanup_(directory_close) DIR *d = NULL;
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (S_ISREG(st.st_mode))
		return ++*n_files < NAMES_MAX && ckpt_is_beside(rules, name);
	d = S_ISDIR(st.st_mode) && depth <= DEPTH_MAX ? directory_open(at, name, false) : NULL;
	if (!d)
		return false;
	for (struct dirent *de; (de = readdir(d));)
		if (!mo_streq(de->d_name, ".") && !mo_streq(de->d_name, "..") &&
		    !only_beside(dirfd(d), de->d_name, depth + 1, rules, n_files))
			return false;
	return true;
}

bool unread_is_beside(int at, const char *name, const struct ckpt_rules *rules, bool *ret_empty)
{
	size_t n_files = 0;
	bool is = only_beside(at, name, 0, rules, &n_files);

	*ret_empty = is && n_files == 0;
	return is;
}

/* skip: where the entries themselves lie. */
static void search_in(struct search *s, const char *dir, const char *skip)
{
	_cleanup_(directory_close) DIR *d = directory_open(AT_FDCWD, dir, true);
	size_t n_skip = skip ? strcspn(skip, "/") : 0;

	s->dir = dir;
	for (struct dirent *de; d && (de = readdir(d)) && s->n_names++ < NAMES_MAX;) {
		int64_t iteration = MO_NONE;
		bool unfinished;

		if (mo_streq(de->d_name, ".") || mo_streq(de->d_name, "..") ||
		    mo_starts_with(de->d_name, OWN) || !may_be_state(s, de))
			continue;
		if (skip && strlen(de->d_name) == n_skip && strncmp(de->d_name, skip, n_skip) == 0)
			continue;
		if (!ckpt_is_entry(s->rules, de->d_name, &iteration, &unfinished))
			judge_one(s, dirfd(d), de->d_name, MO_NONE);
		else if (!s->entries || unmarked(s, dirfd(d), de->d_name, iteration))
			judge_one(s, dirfd(d), de->d_name, iteration);
	}
}

/* What the recipe named, and the engine adds a directory to; skip: that one. */
static void search_in_named(struct search *s, const struct command *order)
{
	_cleanup_(mo_freep) char *named = mo_path_clean(order->named);
	size_t n = strlen(named);
	const char *skip = order->dir + n + (named[n - 1] != '/');

	s->named = true;
	s->entries = false;
	if (strncmp(order->dir, named, n) != 0 || strlen(order->dir) <= n)
		return;
	if (!judge_itself(s, named))
		search_in(s, named, skip);
}

void unread_find(const struct command *order, struct scan_result *ret)
{
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;
	const struct ckpt_layout *l = order->layout;
	struct search s = { .layout = l, .ret = ret, .entries = true };

	if (l->n_state_names == 0 || ckpt_rules_new(l, &rules, NULL) < 0)
		return;
	s.rules = rules;
	if (l->subdir) {
		_cleanup_(mo_freep) char *entries = mo_path(order->dir, "%s", l->subdir);

		search_in(&s, entries, NULL);
		s.entries = false;
	}
	if (!judge_itself(&s, order->dir))
		search_in(&s, order->dir, l->subdir);
	if (order->named && order->named[0] == '/')
		search_in_named(&s, order);
}
