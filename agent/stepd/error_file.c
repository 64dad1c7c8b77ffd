/* See error_file.h. What it says is the rank's word, as its lines are. It lies in the step's
 * directory, where its user can put nothing else in its place; a file that is none, is too large or
 * is not what torch writes counts as one that says nothing. */
#include "agent/stepd/error_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/stepd/output.h"
#include "lib/base/fd.h"
#include "lib/wire/parse.h"

#define ERROR_BYTES ((size_t)64 * 1024)
#define NAME_BYTES 48

static void name_of(const struct rank *r, char ret[NAME_BYTES])
{
	snprintf(ret, NAME_BYTES, "error.%lld.json", (long long)r->rank);
}

char *error_file_path(const struct stepd *s, const struct rank *r)
{
	char name[NAME_BYTES];

	name_of(r, name);
	return mo_path(s->dir, "%s", name);
}

int error_file_make(struct stepd *s, const struct rank *r, struct mo_error *err)
{
	char name[NAME_BYTES];

	name_of(r, name);
	_cleanup_(mo_closep) int fd =
		mo_open_at(s->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 && errno == EEXIST) { /* of a dead stepd */
		mo_remove_at(s->dir_fd, name, 0);
		fd = mo_open_at(s->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	}
	if (fd < 0 || (s->who.change && mo_chown_fd(fd, s->who.uid, s->who.gid) < 0))
		return mo_error_set(err, -errno, "%s/%s: %s", s->dir, name, strerror(errno));
	return 0;
}

/* {"message": {"message": "RuntimeError: ...", "extraInfo": {...}}}, or {"message": "..."} */
static const char *message_of(struct json_object *o)
{
	for (int depth = 0; depth < 2; depth++) {
		struct json_object *inner = NULL;

		if (!json_object_is_type(o, json_type_object) ||
		    !json_object_object_get_ex(o, "message", &inner))
			return NULL;
		if (json_object_is_type(inner, json_type_string))
			return json_object_get_string(inner);
		o = inner;
	}
	return NULL;
}

void error_file_read(const struct stepd *s, struct rank *r)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct json_object *o = NULL;
	const char *message;
	char name[NAME_BYTES];
	struct stat st;

	name_of(r, name);
	/* not blocking: he may hold a lease on it */
	_cleanup_(mo_closep) int fd =
		mo_open_at(s->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || mo_stat_fd(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
	    mo_read_fd(fd, ERROR_BYTES, &text) < 0 || wire_parse(text.data, text.len, &o, NULL) < 0)
		return;
	message = message_of(o);
	if (message)
		output_error(r, message);
	json_object_put(o);
}
