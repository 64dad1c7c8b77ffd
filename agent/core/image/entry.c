/* See entry.h. */
#include "agent/core/image/entry.h"

#include <errno.h>
#include <string.h>

#include "agent/core/image/oci.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"
#define OWN_WHITEOUT ".wh..wh." /* notes of aufs */
#define RWX_ALL 0777
#define STICKY 01000
#define OWNER_READS 0400
#define OWNER_WORKS 0700

void entry_done(struct entry *e)
{
	free(e->dir);
	free(e->name);
	free(e->link_dir);
	free(e->link);
	*e = (struct entry){ 0 };
}

static int refuse(struct mo_error *err, const char *path, const char *what)
{
	return mo_error_set(err, IMAGE_REFUSED, "%s: %.*s", what, mo_utf8_shown(path, 200), path);
}

/* The path in two parts without ".", empty parts and slashes at its ends; *ret_name NULL: it is the
 * root. */
static int split(const char *path, char **ret_dir, char **ret_name, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf dir = { 0 };
	_cleanup_(mo_freep) char *name = NULL;
	int depth = 0;

	if (strlen(path) > ENTRY_PATH_MAX)
		return refuse(err, path, "a name in it is too long");
	for (const char *s = path; *s;) {
		size_t n = strcspn(s, "/");
		const char *part = s;

		s += n + (s[n] == '/');
		if (n == 0 || (n == 1 && *part == '.'))
			continue;
		if (n == 2 && memcmp(part, "..", 2) == 0)
			return refuse(err, path, "a name in it leads upwards (..)");
		if (n > ENTRY_NAME_MAX)
			return refuse(err, path, "a name in it is too long");
		if (++depth > ENTRY_DEPTH_MAX)
			return refuse(err, path, "a name in it has too many directories");
		if (name)
			mo_buf_printf(&dir, "%s%s", dir.len ? "/" : "", name);
		free(name);
		name = mo_strndup(part, n);
	}
	*ret_dir = mo_buf_take(&dir);
	*ret_name = TAKE_PTR(name);
	return 0;
}

static void read_whiteout(struct entry *e)
{
	char *name = e->name;

	if (!mo_starts_with(name, WHITEOUT))
		return;
	if (mo_streq(name, OPAQUE))
		e->kind = ENTRY_OPAQUE;
	else if (mo_starts_with(name, OWN_WHITEOUT) || strlen(name) == strlen(WHITEOUT))
		e->kind = ENTRY_NONE;
	else {
		e->kind = ENTRY_WHITEOUT;
		e->name = mo_strdup(name + strlen(WHITEOUT));
		free(name);
	}
}

static int read_target(const struct entry_said *said, struct entry *e, struct mo_error *err)
{
	const char *link = said->link ? said->link : "";

	if (e->kind == ENTRY_HARDLINK) {
		int r = split(link, &e->link_dir, &e->link, err);

		return r < 0 || e->link ? r : refuse(err, said->path, "a hard link leads nowhere");
	}
	if (!*link || strlen(link) > ENTRY_PATH_MAX)
		return refuse(err, said->path, "a symbolic link is empty or too long");
	e->link = mo_strdup(link);
	return 0;
}

int entry_read(const struct entry_said *said, struct entry *ret, struct mo_error *err)
{
	int r = split(said->path, &ret->dir, &ret->name, err);

	if (r < 0)
		return r;
	ret->kind = ret->name ? said->kind : ENTRY_NONE;
	ret->mode = (unsigned)said->mode & RWX_ALL;
	if (ret->kind == ENTRY_DIRECTORY)
		ret->mode |= ((unsigned)said->mode & STICKY) | OWNER_WORKS;
	else
		ret->mode |= OWNER_READS;
	if (ret->name)
		read_whiteout(ret);
	if (ret->name && (mo_streq(ret->name, ".") || mo_streq(ret->name, "..")))
		return refuse(err, said->path, "it takes away what is no name");
	if (ret->kind == ENTRY_SYMLINK || ret->kind == ENTRY_HARDLINK)
		return read_target(said, ret, err);
	return 0;
}

int entry_count(struct entry_sum *sum, int64_t bytes, struct mo_error *err)
{
	if (bytes < 0 || bytes > sum->bytes_max - sum->bytes) {
		mo_error_set(err, IMAGE_REFUSED, "its files have more than %lld bytes",
			     (long long)sum->bytes_max);
		mo_error_hint(err, "allow more with --max-bytes");
		return IMAGE_REFUSED;
	}
	if (++sum->entries > ENTRIES_MAX)
		return mo_error_set(err, IMAGE_REFUSED, "it has more than %d files", ENTRIES_MAX);
	sum->bytes += bytes;
	return 0;
}
