/* See scan.h. The directory belongs to users and may change while it is read: whatever vanishes or turns into something else counts as missing. */
#include "agent/ckpt/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/model/limits.h"
#include "lib/wire/json.h"

#define NAMES_MAX 1000000              /* names of the checkpoint directory */
#define FILES_MAX 400000               /* files of one checkpoint: 131,072 ranks with three each */
#define DEPTH_MAX 4                    /* directories below an entry */
#define MARKER_BYTES_MAX (64 * 1024 * 1024)

static int64_t mtime_ns(const struct stat *st) {
	return st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec;
}

static DIR *open_directory(int at, const char *name, bool follow) {
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));

	if (fd < 0)
		return NULL;
	DIR *d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

static void close_directory(DIR **d) {
	if (*d)
		closedir(*d);
}

/* ---- markers ---- */

static int64_t json_number(struct json_object *doc, const char *key) {
	struct json_object *v;

	return json_object_object_get_ex(doc, key, &v) && json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : MO_NONE;
}

/* {iteration, world, files: {name: bytes}}, all of it optional. */
static void read_json_marker(const char *text, size_t n, struct ckpt_marker *m) {
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct json_object *doc = NULL, *files;

	if (wire_parse(text, n, &doc, &err) < 0) {
		m->damage = mo_printf("it is no whole JSON document (%s)", mo_error_text(&err, -EINVAL));
		return;
	}
	if (json_object_is_type(doc, json_type_object)) {
		m->iteration = json_number(doc, "iteration");
		m->world = json_number(doc, "world");
		if (json_object_object_get_ex(doc, "files", &files) && json_object_is_type(files, json_type_object)) {
			m->lists_files = true;
			json_object_object_foreach(files, name, bytes) {
				struct ckpt_file *f = MO_GROW(m->files, m->n_files);
				*f = (struct ckpt_file){ .name = mo_strdup(name), .bytes = json_object_is_type(bytes, json_type_int) ? json_object_get_int64(bytes) : -1 };
			}
		}
	}
	json_object_put(doc);
}

static bool ends_with(const char *s, const char *end) {
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

/* JSON must parse; a pickle (PyTorch's .metadata) begins with its protocol mark and ends with STOP; any other text is taken as it is. */
static void read_marker_content(int fd, struct ckpt_marker *m) {
	unsigned char first = 0, last = 0;

	if (m->bytes <= 0)
		return;
	if (pread(fd, &first, 1, 0) != 1 || pread(fd, &last, 1, m->bytes - 1) != 1) {
		m->damage = mo_strdup("it cannot be read");
		return;
	}
	if (first == 0x80) {
		if (last != '.')
			m->damage = mo_strdup("it is cut short");
		return;
	}
	if (first != '{' && !ends_with(m->name, ".json"))
		return;
	if (m->bytes > MARKER_BYTES_MAX) {
		m->damage = mo_printf("it is larger than %d MiB", MARKER_BYTES_MAX >> 20);
		return;
	}
	_cleanup_(mo_freep) char *text = mo_alloc((size_t)m->bytes + 1);
	ssize_t n = pread(fd, text, (size_t)m->bytes, 0);
	if (n != m->bytes)
		m->damage = mo_strdup("it changed while it was read");
	else
		read_json_marker(text, (size_t)n, m);
}

static void read_marker(int entry_fd, const char *name, struct ckpt_marker *m) {
	struct stat st;

	m->name = mo_strdup(name);
	m->iteration = m->world = MO_NONE;
	int fd = openat(entry_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		m->present = true;
		m->bytes = st.st_size;
		m->mtime_ns = mtime_ns(&st);
		read_marker_content(fd, m);
	}
	close(fd);
}

/* ---- one entry ---- */

static void list_files(int at, const char *prefix, int depth, struct ckpt_entry *e) {
	_cleanup_(close_directory) DIR *d = open_directory(at, ".", false);

	for (struct dirent *de; d && (de = readdir(d)) && e->n_files < FILES_MAX; ) {
		struct stat st;
		if (mo_streq(de->d_name, ".") || mo_streq(de->d_name, "..") || fstatat(at, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode)) {
			struct ckpt_file *f = MO_GROW(e->files, e->n_files);
			*f = (struct ckpt_file){ .name = mo_printf("%s%s", prefix, de->d_name), .bytes = st.st_size, .mtime_ns = mtime_ns(&st) };
		} else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			int fd = openat(at, de->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			_cleanup_(mo_freep) char *below = mo_printf("%s%s/", prefix, de->d_name);
			if (fd < 0)
				continue;
			list_files(fd, below, depth + 1, e);
			close(fd);
		}
	}
}

/* Returns why it cannot be looked at, NULL fine; caller frees. Marker level lists the entry's own files only: it is for file systems where a whole checkpoint takes minutes. */
static char *read_entry(int dir_fd, const struct ckpt_layout *layout, enum ckpt_level level, struct ckpt_entry *e) {
	struct stat st;

	if (fstatat(dir_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return mo_printf("it cannot be looked at: %s", strerror(errno));
	e->mtime_ns = mtime_ns(&st);
	if (S_ISREG(st.st_mode)) {
		struct ckpt_file *f = MO_GROW(e->files, e->n_files);
		*f = (struct ckpt_file){ .name = mo_strdup(e->name), .bytes = st.st_size, .mtime_ns = e->mtime_ns };
		return NULL;
	}
	int fd = openat(dir_fd, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return mo_printf("it cannot be opened: %s", strerror(errno));
	e->directory = true;
	/* Markers first: a save that ends meanwhile is then seen without its marker, never with a marker and with files of before it. */
	for (size_t i = 0; i < layout->n_markers; i++)
		read_marker(fd, layout->markers[i], MO_GROW(e->markers, e->n_markers));
	list_files(fd, "", level == LEVEL_MARKER ? DEPTH_MAX : 0, e);
	close(fd);
	return NULL;
}

static void report(const struct ckpt_entry *e, const char *dir, char *reason, struct scan_result *ret) {
	struct found_checkpoint *f = MO_ADD(ret, items, &found_checkpoint_desc);
	int64_t marked = MO_NONE;

	f->iteration = e->iteration;
	f->path = mo_path(dir, "%s", e->name);
	f->complete = !reason;
	f->reason = reason;
	f->bytes = 0;
	for (size_t i = 0; i < e->n_files; i++)
		f->bytes += e->files[i].bytes;
	for (size_t i = 0; i < e->n_markers; i++)
		if (e->markers[i].present)
			marked = MO_MAX(marked, e->markers[i].mtime_ns);
	f->saved_at = (marked == MO_NONE ? e->mtime_ns : marked) / 1000000 * 1000;   /* times are told in ms */
}

/* ---- the directory ---- */

struct names { struct ckpt_entry *items; size_t n; };

static void names_done(struct names *l) {
	for (size_t i = 0; i < l->n; i++)
		ckpt_entry_done(&l->items[i]);
	free(l->items);
}

static int newest_first(const void *a, const void *b) {
	const struct ckpt_entry *x = a, *y = b;

	return x->iteration != y->iteration ? (x->iteration < y->iteration) - (x->iteration > y->iteration) : strcmp(x->name, y->name);
}

static void list_names(DIR *d, const struct ckpt_rules *rules, struct names *ret) {
	size_t seen = 0;

	for (struct dirent *de; (de = readdir(d)) && seen < NAMES_MAX; seen++) {
		int64_t iteration;
		struct stat st;
		if (de->d_name[0] == '.' || !ckpt_is_entry(rules, de->d_name, &iteration))
			continue;
		if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
			continue;
		struct ckpt_entry *e = MO_GROW(ret->items, ret->n);
		e->name = mo_strdup(de->d_name);
		e->iteration = iteration;
	}
	if (ret->items)
		qsort(ret->items, ret->n, sizeof(*ret->items), newest_first);
}

static enum ckpt_tracker read_tracker(int dir_fd, const char *name, int64_t *ret) {
	char text[64];

	if (!name)
		return TRACKER_NONE;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? TRACKER_MISSING : TRACKER_DAMAGED;
	ssize_t n = read(fd, text, sizeof(text));
	close(fd);
	return n < 0 ? TRACKER_DAMAGED : ckpt_tracker_parse(text, (size_t)n, ret);
}

/* ---- checkpoint.keep ---- */

/* The announced path is the entry or lies in it. */
static bool leads_into(const char *path, const char *dir, const char *name) {
	_cleanup_(mo_freep) char *entry = mo_path(dir, "%s", name), *clean_entry = mo_path_clean(entry), *clean = mo_path_clean(path);
	size_t n = strlen(clean_entry);

	return strncmp(clean, clean_entry, n) == 0 && (clean[n] == '\0' || clean[n] == '/');
}

/* Other things in the directory may end in the same number: without a path only a directory is meant. */
static bool ordered(int dir_fd, const char *dir, const struct command *order, const struct ckpt_entry *e) {
	struct stat st;

	for (size_t i = 0; i < order->n_prune; i++) {
		const struct found_checkpoint *f = &order->prune[i];
		if (f->iteration != e->iteration)
			continue;
		if (f->path)
			return leads_into(f->path, dir, e->name);
		return fstatat(dir_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
	}
	return false;
}

/* Below at only; links are removed, never followed. Markers go first, so that what is half removed is no complete checkpoint. */
static void remove_tree(int at, const char *name, const struct ckpt_layout *layout, int depth) {
	int fd = depth < DEPTH_MAX + 2 ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd < 0) {
		unlinkat(at, name, 0);
		return;
	}
	for (size_t i = 0; depth == 0 && i < layout->n_markers; i++)
		unlinkat(fd, layout->markers[i], 0);
	_cleanup_(close_directory) DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return;
	}
	for (struct dirent *de; (de = readdir(d)); )
		if (!mo_streq(de->d_name, ".") && !mo_streq(de->d_name, ".."))
			remove_tree(dirfd(d), de->d_name, layout, depth + 1);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* What could not be removed is found and reported as it is. */
static void prune(int dir_fd, const char *dir, const struct command *order, struct names *names) {
	size_t kept = 0;

	for (size_t i = 0; i < names->n; i++) {
		struct stat st;
		if (ordered(dir_fd, dir, order, &names->items[i])) {
			remove_tree(dir_fd, names->items[i].name, order->layout, 0);
			if (fstatat(dir_fd, names->items[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
				ckpt_entry_done(&names->items[i]);
				continue;
			}
		}
		names->items[kept++] = names->items[i];
	}
	names->n = kept;
}

/* Several entries of one iteration (a step directory and a log of the same number): the complete one counts. */
static void keep_one(struct scan_result *ret) {
	size_t n = ret->n_items;

	if (n < 2 || ret->items[n - 1].iteration != ret->items[n - 2].iteration)
		return;
	bool later_is_better = ret->items[n - 1].complete && !ret->items[n - 2].complete;
	mo_vec_remove(&found_checkpoint_desc, ret->items, &ret->n_items, later_is_better ? n - 2 : n - 1);
}

int scan_directory(const struct command *order, enum ckpt_level level, struct scan_result *ret, struct mo_error *err) {
	_cleanup_(ckpt_rules_freep) struct ckpt_rules *rules = NULL;
	_cleanup_(names_done) struct names names = { 0 };
	const struct ckpt_layout *layout = order->layout;
	_cleanup_(mo_freep) char *dir = layout->subdir ? mo_path(order->dir, "%s", layout->subdir) : mo_strdup(order->dir);
	int64_t says = MO_NONE;
	int r = ckpt_rules_new(layout, &rules, err);

	if (r < 0)
		return r;
	_cleanup_(close_directory) DIR *d = open_directory(AT_FDCWD, dir, true);
	if (!d && errno == ENOENT)
		return 0;
	if (!d)
		return mo_error_set(err, -errno, "it cannot be read: %s", strerror(errno));
	list_names(d, rules, &names);
	prune(dirfd(d), dir, order, &names);
	enum ckpt_tracker tracker = read_tracker(dirfd(d), layout->tracker, &says);
	for (size_t i = 0; i < names.n && ret->n_items < MO_CHECKPOINTS_MAX; i++) {
		struct ckpt_entry *e = &names.items[i];
		char *reason = read_entry(dirfd(d), layout, level, e);
		report(e, dir, reason ? reason : ckpt_judge(rules, e, level, order->world, tracker, says), ret);
		keep_one(ret);
		ckpt_entry_done(e);            /* one entry's files in memory at a time */
	}
	return 0;
}

int scan_probe(const char *dir, struct mo_error *err) {
	_cleanup_(mo_freep) char *tag = mo_random_hex(8);
	_cleanup_(mo_freep) char *path = mo_path(dir, ".moe-probe-%s", tag ? tag : "x");
	int r = mo_mkdir_p(dir, 0777);
	int fd = r < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (r == 0 && fd < 0)
		r = -errno;
	if (fd >= 0) {
		r = mo_write_all(fd, "probe\n", 6);
		if (r == 0 && fsync(fd) < 0)
			r = -errno;            /* a full disk or a used-up quota may show only here */
		close(fd);
		unlink(path);
	}
	return r < 0 ? mo_error_set(err, r, "it cannot be written: %s", strerror(-r)) : 0;
}
