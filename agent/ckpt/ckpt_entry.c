/* One entry of a checkpoint directory as it lies there. It belongs to users and may change while
 * it is read: whatever vanishes or turns into something else counts as missing. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "agent/core/ckpt/archive.h"
#include "agent/core/ckpt/ckpt_marker.h"
#include "agent/core/ckpt/ckpt_stated.h"
#include "lib/base/fd.h"
#include "lib/wire/parse.h"

#define MARKER_BYTES_MAX (512LL << 20) /* .metadata of 12,500 ranks has 60 MB */
#define MARKER_HEAD 4096
#define PARTS_TRIED 4 /* files of a grid that are asked how many there are */
/* files that are asked for their iteration: a few megabytes each at most */
#define ITERATIONS_TRIED 64

static int64_t mtime_ns(const struct stat *st)
{
	return st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec;
}

DIR *directory_open(int at, const char *name, bool follow)
{
	int fd =
		openat(at, name,
		       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));

	if (fd < 0)
		return NULL;
	DIR *d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

void directory_close(DIR **d)
{
	if (*d)
		closedir(*d);
}

int file_open(int at, const char *name)
{
	_cleanup_(mo_freep) char *first = mo_strndup(name, strcspn(name, "/"));
	const char *rest = name + strlen(first);
	struct stat st;

	if (mo_streq(first, "..") || !*first)
		return -EINVAL;
	int fd = openat(at, first,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (*rest ? O_DIRECTORY : 0));
	if (fd < 0)
		return -errno;
	int r = *rest                                        ? file_open(fd, rest + 1)
		: fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fd
							     : -EINVAL;
	if (r != fd)
		close(fd);
	return r;
}

/* ---- markers ---- */

static int64_t json_number(struct json_object *doc, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(doc, key, &v) && json_object_is_type(v, json_type_int)
		       ? json_object_get_int64(v)
		       : MO_NONE;
}

static bool says_something(struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_string: return json_object_get_string_len(v) > 0;
	case json_type_object: return json_object_object_length(v) > 0;
	case json_type_array: return json_object_array_length(v) > 0;
	default: return json_object_get_boolean(v); /* no null, zero or false */
	}
}

/* names: between blanks. */
static char *missing_member(struct json_object *doc, const char *names)
{
	for (const char *at = names; *at; at += strspn(at, " ")) {
		_cleanup_(mo_freep) char *name = mo_strndup(at, strcspn(at, " "));
		struct json_object *v = NULL;
		if (!json_object_is_type(doc, json_type_object))
			return mo_printf("it is no JSON object with a member %s", name);
		bool given = json_object_object_get_ex(doc, name, &v);
		if (!given || !says_something(v))
			return mo_printf("its member %s is %s: the save was not finished", name,
					 given ? "null or empty" : "missing");
		at += strlen(name);
	}
	return NULL;
}

/* {iteration, world, files: {name: bytes}}, all of it optional. members: those that there must
 * be, NULL = none. */
static void read_json_marker(const char *text, size_t n, const char *members, struct ckpt_marker *m)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct json_object *doc = NULL, *files;

	if (wire_parse(text, n, &doc, &err) < 0) {
		m->damage = mo_printf("it is no whole JSON document (%s)",
				      mo_error_text(&err, -EINVAL));
		return;
	}
	m->damage = members ? missing_member(doc, members) : NULL;
	if (json_object_is_type(doc, json_type_object)) {
		m->iteration = json_number(doc, "iteration");
		m->world = json_number(doc, "world");
		if (json_object_object_get_ex(doc, "files", &files) &&
		    json_object_is_type(files, json_type_object)) {
			m->lists_files = true;
			json_object_object_foreach(files, name, bytes) {
				struct ckpt_file *f = MO_GROW(m->files, m->n_files);
				*f = (struct ckpt_file){
					.name = mo_strdup(name),
					.bytes = json_object_is_type(bytes, json_type_int)
							 ? json_object_get_int64(bytes)
							 : -1
				};
			}
		}
	}
	json_object_put(doc);
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

/* What the layout or its name says that it is; else what it begins like. JSON is parsed here;
 * any other text is taken as it is, but not zeros alone. */
static void read_marker_content(int fd, const struct ckpt_rules *rules, struct ckpt_marker *m)
{
	enum ckpt_format format = ckpt_format_of(rules, m->name);
	const char *members = ckpt_members_of(rules, m->name);
	unsigned char head[MARKER_HEAD];
	ssize_t n = m->bytes > 0 ? pread(fd, head, sizeof(head), 0) : 0;

	if (m->bytes <= 0)
		return;
	if (n <= 0)
		m->damage = mo_strdup("it cannot be read");
	else if (only_zeros(head, (size_t)n))
		m->damage = mo_strdup("it holds zeros where it should say something");
	bool json = n > 0 && (members || format == FORMAT_JSON ||
			      (format == FORMAT_UNKNOWN && head[0] != 0x80 &&
			       (head[0] == '{' || ends_with(m->name, ".json"))));
	if (m->damage || (!json && n > 0 && head[0] != 0x80 && !ckpt_reads_marker(rules, m->name)))
		return;
	if (m->bytes > MARKER_BYTES_MAX) {
		m->damage = mo_printf("it is larger than %lld MiB",
				      (long long)(MARKER_BYTES_MAX >> 20));
		return;
	}
	_cleanup_(mo_freep) char *text = mo_alloc((size_t)m->bytes + 1);
	if (pread(fd, text, (size_t)m->bytes, 0) != m->bytes) {
		m->damage = mo_strdup("it changed while it was read");
		return;
	}
	if (json)
		read_json_marker(text, (size_t)m->bytes, members, m);
	if (!m->damage)
		ckpt_marker_content(rules, text, (size_t)m->bytes, m);
}

/* One of the alternatives "a|b": the first that is there. */
static void read_marker(int entry_fd, const struct ckpt_rules *rules, const char *names,
			bool content, struct ckpt_marker *m)
{
	struct stat st;

	m->name = mo_strdup(names);
	m->iteration = m->world = MO_NONE;
	for (const char *at = names; at && !m->present;
	     at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
		_cleanup_(mo_freep) char *name = mo_strndup(at, strcspn(at, "|"));
		int fd = file_open(entry_fd, name);
		if (fd >= 0 && fstat(fd, &st) == 0) {
			mo_str_set(&m->name, name);
			m->present = true;
			m->bytes = st.st_size;
			m->mtime_ns = mtime_ns(&st);
			if (content)
				read_marker_content(fd, rules, m);
		}
		mo_close(fd);
	}
}

/* ---- files ---- */

static char *damage_of(int at, const char *name, const char *below, int64_t bytes,
		       const struct ckpt_rules *rules)
{
	int fd = bytes > 0 ? file_open(at, name) : -1;
	char *damage = fd < 0 ? NULL : format_damage(fd, name, bytes, ckpt_format_of(rules, below));

	mo_close(fd);
	return damage;
}

static void list_files(int at, const char *prefix, int depth, const struct ckpt_rules *rules,
		       struct ckpt_entry *e)
{
	_cleanup_(directory_close) DIR *d = directory_open(at, ".", false);

	for (struct dirent *de; d && (de = readdir(d));) {
		struct stat st;
		if (mo_streq(de->d_name, ".") || mo_streq(de->d_name, "..") ||
		    fstatat(at, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (e->n_files >= FILES_MAX) {
			e->too_many = true;
			return;
		}
		if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) {
			struct ckpt_file *f = MO_GROW(e->files, e->n_files);
			*f = (struct ckpt_file){ .name = mo_printf("%s%s", prefix, de->d_name),
						 .bytes = st.st_size,
						 .mtime_ns = mtime_ns(&st),
						 .inode = (int64_t)st.st_ino,
						 .crc = MO_NONE };
			if (S_ISLNK(st.st_mode))
				f->damage =
					mo_strdup("it is a symbolic link, which is not followed");
			else if (e->thorough)
				f->damage = damage_of(at, de->d_name, f->name, st.st_size, rules);
		} else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			_cleanup_(mo_closep) int fd =
				openat(at, de->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			_cleanup_(mo_freep) char *below = mo_printf("%s%s/", prefix, de->d_name);
			if (fd >= 0)
				list_files(fd, below, depth + 1, rules, e);
		}
	}
}

/* Grids whose files say in their pickle how many there are. */
static void ask_parts(int entry_fd, const struct ckpt_rules *rules, struct ckpt_entry *e)
{
	size_t grid, tried[CKPT_GRIDS_MAX] = { 0 };

	for (size_t i = 0; i < e->n_files; i++) {
		const struct ckpt_file *f = &e->files[i];
		if (f->damage || !ckpt_tells_parts(rules, f->name, &grid) || e->parts[grid] > 0 ||
		    tried[grid] >= PARTS_TRIED)
			continue;
		_cleanup_(mo_freep) char *pickle = NULL;
		size_t n = 0;
		int fd = file_open(entry_fd, f->name);
		tried[grid]++;
		if (fd >= 0 && format_pickle(fd, f->bytes, &pickle, &n))
			ckpt_parts_stated(rules, grid, pickle, n, e);
		mo_close(fd);
	}
}

/* Grids of which other files say something; the first of them that can be read counts. */
static void ask_of_grids(int entry_fd, const struct ckpt_rules *rules, size_t n_grids,
			 struct ckpt_entry *e)
{
	for (size_t grid = 0; grid < n_grids && grid < CKPT_GRIDS_MAX; grid++) {
		size_t tried = 0;
		bool stated = false;
		for (size_t i = 0; i < e->n_files && !stated && tried < PARTS_TRIED; i++) {
			const struct ckpt_file *f = &e->files[i];
			_cleanup_(mo_freep) char *pickle = NULL;
			size_t n = 0;
			if (f->damage || !ckpt_tells_of_grid(rules, grid, f->name))
				continue;
			int fd = file_open(entry_fd, f->name);
			tried++;
			stated = fd >= 0 && format_pickle(fd, f->bytes, &pickle, &n);
			if (stated)
				ckpt_grid_stated(rules, grid, pickle, n, e);
			mo_close(fd);
		}
	}
}

/* A whole save under another one's name: the engine would go on from the iteration that is in
 * it. */
static void ask_iteration(int entry_fd, const struct ckpt_rules *rules, struct ckpt_entry *e)
{
	size_t tried = 0;

	for (size_t i = 0; i < e->n_files && tried < ITERATIONS_TRIED; i++) {
		struct ckpt_file *f = &e->files[i];
		const char *words = f->damage ? NULL : ckpt_iteration_words(rules, f->name);
		_cleanup_(mo_freep) char *pickle = NULL;
		size_t n = 0;
		if (!words)
			continue;
		int fd = file_open(entry_fd, f->name);
		tried++;
		if (fd >= 0 && format_pickle(fd, f->bytes, &pickle, &n))
			f->damage = ckpt_iteration_damage(words, pickle, n, e->iteration);
		mo_close(fd);
	}
}

/* Its name says no iteration: the first of its files that does. */
static void ask_state(int at, const struct ckpt_layout *layout, struct ckpt_entry *e)
{
	int64_t stated = -1;

	for (size_t i = 0; i < e->n_files && stated < 0 && i < ITERATIONS_TRIED; i++) {
		_cleanup_(mo_freep) char *pickle = NULL;
		size_t n = 0;
		int fd = e->files[i].damage ? -1 : file_open(at, e->files[i].name);

		if (fd >= 0 && format_pickle(fd, e->files[i].bytes, &pickle, &n))
			stated = ckpt_state_iteration(layout, pickle, n);
		mo_close(fd);
	}
	e->iteration = MO_MAX(stated, 0);
}

/* Without any marker the names of the files are what tells. */
static bool grids_are_all(const struct ckpt_layout *layout, const struct ckpt_entry *e)
{
	for (size_t i = 0; i < e->n_markers; i++)
		if (e->markers[i].present)
			return false;
	return layout->n_grids > 0;
}

/* Marker level lists the entry's own files only: it is for file systems where a whole checkpoint
 * takes minutes. */
void ckpt_entry_read(int dir_fd, const struct ckpt_layout *layout, const struct ckpt_rules *rules,
		     enum ckpt_level level, bool read, bool thorough, struct ckpt_entry *e)
{
	struct stat st;

	if (fstatat(dir_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		e->damage = mo_printf("it cannot be looked at: %s", strerror(errno));
		return;
	}
	e->mtime_ns = mtime_ns(&st);
	if (S_ISREG(st.st_mode)) {
		struct ckpt_file *f = MO_GROW(e->files, e->n_files);
		*f = (struct ckpt_file){ .name = mo_strdup(e->name),
					 .bytes = st.st_size,
					 .mtime_ns = e->mtime_ns,
					 .inode = (int64_t)st.st_ino,
					 .crc = MO_NONE };
		if (layout->given && read)
			f->damage = damage_of(dir_fd, e->name, e->name, st.st_size, rules);
		if (layout->unnumbered && read && !f->damage)
			ask_state(dir_fd, layout, e);
		return;
	}
	if (S_ISLNK(st.st_mode)) {
		if (!e->damage)
			e->damage = mo_strdup("it is a symbolic link, which is not followed");
		return;
	}
	_cleanup_(mo_closep) int fd =
		openat(dir_fd, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		if (!e->damage)
			e->damage = mo_printf("it cannot be opened: %s", strerror(errno));
		return;
	}
	e->directory = true;
	/* Markers first: a save that ends meanwhile is then seen without its marker, never with
	 * a marker and with files of before it. */
	for (size_t i = 0; i < layout->n_markers; i++)
		read_marker(fd, rules, layout->markers[i], read, MO_GROW(e->markers, e->n_markers));
	e->thorough = thorough && level != LEVEL_MARKER;
	list_files(fd, "", level == LEVEL_MARKER && !grids_are_all(layout, e) ? DEPTH_MAX : 0,
		   rules, e);
	ckpt_files_sort(e->files, e->n_files);
	e->asked = read;
	if (e->asked) {
		ask_parts(fd, rules, e);
		ask_of_grids(fd, rules, layout->n_grids, e);
		ask_iteration(fd, rules, e);
		if (layout->unnumbered)
			ask_state(fd, layout, e);
	}
}
