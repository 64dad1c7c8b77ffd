/* One entry of a checkpoint directory as it lies there. It belongs to users and may change while it is read: whatever vanishes or turns into something else counts as missing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "lib/base/fd.h"
#include "lib/wire/json.h"

#define MARKER_BYTES_MAX (512LL << 20) /* .metadata of 12,500 ranks has 60 MB */

static int64_t mtime_ns(const struct stat *st) {
	return st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec;
}

DIR *directory_open(int at, const char *name, bool follow) {
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));

	if (fd < 0)
		return NULL;
	DIR *d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

void directory_close(DIR **d) {
	if (*d)
		closedir(*d);
}

int file_open(int at, const char *name) {
	_cleanup_(mo_freep) char *first = mo_strndup(name, strcspn(name, "/"));
	const char *rest = name + strlen(first);
	struct stat st;

	if (mo_streq(first, "..") || !*first)
		return -EINVAL;
	int fd = openat(at, first, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (*rest ? O_DIRECTORY : 0));
	if (fd < 0)
		return -errno;
	int r = *rest ? file_open(fd, rest + 1) : fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fd : -EINVAL;
	if (r != fd)
		close(fd);
	return r;
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
static void read_marker_content(int fd, const struct ckpt_rules *rules, struct ckpt_marker *m) {
	unsigned char first = 0, last = 0;

	if (m->bytes <= 0)
		return;
	if (pread(fd, &first, 1, 0) != 1 || pread(fd, &last, 1, m->bytes - 1) != 1) {
		m->damage = mo_strdup("it cannot be read");
		return;
	}
	bool pickle = first == 0x80, json = !pickle && (first == '{' || ends_with(m->name, ".json"));
	if (pickle && last != '.')
		m->damage = mo_strdup("it is cut short");
	if (m->damage || (!json && !ckpt_reads_markers(rules)))
		return;
	if (m->bytes > MARKER_BYTES_MAX) {
		m->damage = mo_printf("it is larger than %lld MiB", (long long)(MARKER_BYTES_MAX >> 20));
		return;
	}
	_cleanup_(mo_freep) char *text = mo_alloc((size_t)m->bytes + 1);
	ssize_t n = pread(fd, text, (size_t)m->bytes, 0);
	if (n != m->bytes)
		m->damage = mo_strdup("it changed while it was read");
	else if (json)
		read_json_marker(text, (size_t)n, m);
	if (n == m->bytes && !m->damage && ckpt_reads_markers(rules))
		ckpt_marker_content(rules, text, (size_t)n, m);
}

/* One of the alternatives "a|b": the first that is there. */
static void read_marker(int entry_fd, const struct ckpt_rules *rules, const char *names, bool content, struct ckpt_marker *m) {
	struct stat st;

	m->name = mo_strdup(names);
	m->iteration = m->world = MO_NONE;
	for (const char *at = names; at && !m->present; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
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

static char *damage_of(int at, const char *name, int64_t bytes) {
	int fd = bytes > 0 ? file_open(at, name) : -1;
	char *damage = fd < 0 ? NULL : format_damage(fd, name, bytes);

	mo_close(fd);
	return damage;
}

static void list_files(int at, const char *prefix, int depth, bool thorough, struct ckpt_entry *e) {
	_cleanup_(directory_close) DIR *d = directory_open(at, ".", false);

	for (struct dirent *de; d && (de = readdir(d)); ) {
		struct stat st;
		if (mo_streq(de->d_name, ".") || mo_streq(de->d_name, "..") || fstatat(at, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (e->n_files >= FILES_MAX) {
			e->too_many = true;
			return;
		}
		if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) {
			struct ckpt_file *f = MO_GROW(e->files, e->n_files);
			*f = (struct ckpt_file){ .name = mo_printf("%s%s", prefix, de->d_name), .bytes = st.st_size, .mtime_ns = mtime_ns(&st), .inode = (int64_t)st.st_ino, .crc = MO_NONE };
			if (S_ISLNK(st.st_mode))
				f->damage = mo_strdup("it is a symbolic link, which is not followed");
			else if (thorough)
				f->damage = damage_of(at, de->d_name, st.st_size);
		} else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			_cleanup_(mo_closep) int fd = openat(at, de->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			_cleanup_(mo_freep) char *below = mo_printf("%s%s/", prefix, de->d_name);
			if (fd >= 0)
				list_files(fd, below, depth + 1, thorough, e);
		}
	}
}

/* Marker level lists the entry's own files only: it is for file systems where a whole checkpoint takes minutes. */
void entry_read(int dir_fd, const struct ckpt_layout *layout, const struct ckpt_rules *rules, enum ckpt_level level, bool read, bool thorough, struct ckpt_entry *e) {
	struct stat st;

	if (fstatat(dir_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		e->damage = mo_printf("it cannot be looked at: %s", strerror(errno));
		return;
	}
	e->mtime_ns = mtime_ns(&st);
	if (S_ISREG(st.st_mode)) {
		struct ckpt_file *f = MO_GROW(e->files, e->n_files);
		*f = (struct ckpt_file){ .name = mo_strdup(e->name), .bytes = st.st_size, .mtime_ns = e->mtime_ns, .inode = (int64_t)st.st_ino, .crc = MO_NONE };
		return;
	}
	if (S_ISLNK(st.st_mode)) {
		if (!e->damage)
			e->damage = mo_strdup("it is a symbolic link, which is not followed");
		return;
	}
	_cleanup_(mo_closep) int fd = openat(dir_fd, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		if (!e->damage)
			e->damage = mo_printf("it cannot be opened: %s", strerror(errno));
		return;
	}
	e->directory = true;
	/* Markers first: a save that ends meanwhile is then seen without its marker, never with a marker and with files of before it. */
	for (size_t i = 0; i < layout->n_markers; i++)
		read_marker(fd, rules, layout->markers[i], read, MO_GROW(e->markers, e->n_markers));
	list_files(fd, "", level == LEVEL_MARKER ? DEPTH_MAX : 0, thorough && level != LEVEL_MARKER, e);
	ckpt_files_sort(e->files, e->n_files);
}
