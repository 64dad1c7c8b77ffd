/* What lies in a checkpoint directory, looks like a model's state, and is none of the checkpoints that the layout knows: a script's own ckpt.pt, or an entry without the marker by which the layout knows
 * whole ones. A job never starts afresh over such files without a word. Only names and sizes are looked at; links are not followed, and what moectl itself keeps there does not count. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"

#define OWN ".moe-"                    /* names of what moectl keeps there */
#define NAMES_MAX 100000
#define STATE_DEPTH 2                  /* directories below the name that stands in the directory */

struct search {
	const struct ckpt_layout *layout;
	const struct ckpt_rules *rules;
	struct scan_result *ret;
	size_t n_names;
};

static int64_t mtime_us(const struct stat *st)
{
	return st->st_mtim.tv_sec * 1000000LL + st->st_mtim.tv_nsec / 1000000 * 1000;   /* times are told in ms */
}

/* By its name and kind, as the directory tells them: a data set of a million files costs no look at each. */
static bool worth_a_look(const struct search *s, const struct dirent *de)
{
	return de->d_type == DT_DIR || de->d_type == DT_UNKNOWN || ckpt_looks_like_state(s->layout, de->d_name, INT64_MAX);
}

/* Adds up what looks like state below the directory. */
static void sum(struct search *s, int at, const char *name, int depth, struct unread_state *u)
{
	_cleanup_(directory_close) DIR *d = directory_open(at, name, false);

	for (struct dirent *de; d && (de = readdir(d)) && s->n_names++ < NAMES_MAX;) {
		struct stat st;

		if (de->d_name[0] == '.' || !worth_a_look(s, de) || fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < STATE_DEPTH)
			sum(s, dirfd(d), de->d_name, depth + 1, u);
		if (!S_ISREG(st.st_mode) || !ckpt_looks_like_state(s->layout, de->d_name, st.st_size))
			continue;
		u->bytes += st.st_size;
		u->saved_at = MO_MAX(u->saved_at, mtime_us(&st));
	}
}

/* Newest first; of MO_UNREAD_MAX only their number is told. */
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

static void look_at(struct search *s, int at, const char *name, int64_t iteration)
{
	struct unread_state u = { .bytes = 0, .saved_at = 0, .iteration = iteration };
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		sum(s, at, name, 0, &u);
		u.name = mo_printf("%s/", name);
	} else if (S_ISREG(st.st_mode) && ckpt_looks_like_state(s->layout, name, st.st_size)) {
		u = (struct unread_state){ .name = mo_strdup(name), .bytes = st.st_size, .saved_at = mtime_us(&st), .iteration = iteration };
	}
	if (u.bytes > 0)
		add(s, &u);
	free(u.name);
}

/* Entries were judged already: only those of a layout whose marker is a word between moectl and the script may be whole all the same, when there is no marker. */
static bool unmarked(const struct search *s, int at, const char *name, int64_t iteration)
{
	_cleanup_(mo_closep) int entry = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

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
static void look_in(struct search *s, const char *dir, const char *skip)
{
	_cleanup_(directory_close) DIR *d = directory_open(AT_FDCWD, dir, true);
	size_t n_skip = skip ? strcspn(skip, "/") : 0;

	for (struct dirent *de; d && (de = readdir(d)) && s->n_names++ < NAMES_MAX;) {
		int64_t iteration = MO_NONE;
		bool unfinished;

		if (mo_streq(de->d_name, ".") || mo_streq(de->d_name, "..") || mo_starts_with(de->d_name, OWN) || !worth_a_look(s, de))
			continue;
		if (skip && strlen(de->d_name) == n_skip && strncmp(de->d_name, skip, n_skip) == 0)
			continue;
		if (!ckpt_is_entry(s->rules, de->d_name, &iteration, &unfinished))
			look_at(s, dirfd(d), de->d_name, MO_NONE);
		else if (unmarked(s, dirfd(d), de->d_name, iteration))
			look_at(s, dirfd(d), de->d_name, iteration);
	}
}

void unread_find(const struct command *order, struct scan_result *ret)
{
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;
	const struct ckpt_layout *l = order->layout;
	struct search s = { .layout = l, .ret = ret };

	if (l->n_state_names == 0 || ckpt_rules_new(l, &rules, NULL) < 0)
		return;
	s.rules = rules;
	if (l->subdir) {
		_cleanup_(mo_freep) char *entries = mo_path(order->dir, "%s", l->subdir);

		look_in(&s, entries, NULL);
	}
	look_in(&s, order->dir, l->subdir);
}
