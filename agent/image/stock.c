/* See stock.h. Each directory is looked at by who owns it, in a process of its own: what a user has
 * put into his is nothing that root reads. */
#include "agent/image/stock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/image/apart.h"
#include "agent/image/cache.h"
#include "agent/image/names.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/parse.h"
#include "lib/model/image.h"
#include "lib/model/image_stored.h"
#include "lib/wire/encode.h"

#define UID_END (1LL << 32)

struct shelf {
	const struct args *args;
	char *path, *user; /* user NULL: everybody's */
	struct mo_identity owner;
};

/* sha256:HEX of sha256-HEX: hexadecimal digits have no dash */
static char *digest_of(const char *name)
{
	char *digest = mo_strdup(name);

	for (char *s = digest; (s = strchr(s, '-')); s++)
		*s = ':';
	return digest;
}

static bool is_meant(const struct image_stored *i, const char *what)
{
	bool is = !what || mo_streq(i->digest, what);

	for (size_t k = 0; k < i->n_names && !is; k++)
		is = mo_streq(i->names[k], what);
	return is;
}

static void take_away(const struct shelf *s, const char *name, struct image_stored *i)
{
	struct mo_error why = { 0 };
	int r = i->in_use ? -EWOULDBLOCK : cache_remove(s->path, name, &why);

	i->in_use = r == -EWOULDBLOCK;
	i->removed = r == 0;
	if (r < 0)
		i->error = mo_strdup(i->in_use ? "it is in use" : mo_error_text(&why, r));
	mo_error_done(&why);
}

static void tell(const struct shelf *s, int dir, const struct cached *c)
{
	struct image_stored i;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_closep) int image =
		mo_open_at(dir, c->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	mo_desc_init(&image_stored_desc, &i);
	i.digest = digest_of(c->name);
	i.bytes = c->bytes;
	i.used_at = c->used_us;
	i.user = mo_strdup(s->user);
	i.in_use = c->in_use || cache_keeps(s->args, c->name);
	names_read(image, &i.names, &i.n_names);
	image = mo_close(image);
	if (is_meant(&i, s->args->removes)) {
		if (s->args->removes)
			take_away(s, c->name, &i);
		wire_encode(&image_stored_desc, &i, &b);
		printf("%s\n", b.data);
	}
	mo_desc_done(&image_stored_desc, &i);
}

static int look(const void *arg, struct mo_error *err)
{
	const struct shelf *s = arg;
	_cleanup_(images_done) struct images all = { 0 };
	_cleanup_(mo_closep) int dir = -1;
	int r = mo_identity_become(&s->owner);

	if (r < 0)
		return mo_error_set(err, r, "cannot become its owner: %s", strerror(-r));
	dir = mo_open_at(AT_FDCWD, s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	r = dir < 0 ? mo_error_set(err, dir, "it cannot be opened: %s", strerror(-dir))
		    : cache_read(s->path, &all, err);
	for (size_t i = 0; r == 0 && i < all.n; i++)
		tell(s, dir, &all.all[i]);
	return r;
}

/* uid: whose alone it is; MO_NONE: it is everybody's. What is not as pull makes it is left out. */
static int look_apart(const struct args *a, const char *path, int64_t uid, struct mo_error *err)
{
	struct shelf s = { .args = a, .path = (char *)path };
	struct stat st;

	if (mo_stat(path, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    (uid != MO_NONE && (int64_t)st.st_uid != uid))
		return 0;
	s.owner = (struct mo_identity){ .change = mo_uid() == 0 && st.st_uid != 0,
					.uid = st.st_uid,
					.gid = st.st_gid };
	if (uid != MO_NONE && mo_identity_name(st.st_uid, &s.user, NULL) < 0)
		s.user = mo_printf("%lld", (long long)uid);
	int r = apart(path, look, &s, err);

	free(s.user);
	return uid == MO_NONE ? r : MO_MIN(r, 0); /* nobody keeps others from looking */
}

int stock(const struct args *a, struct mo_error *err)
{
	_cleanup_(mo_dir_freep) struct mo_dir *names = mo_dir_open(AT_FDCWD, a->dir, 0);
	_cleanup_(mo_freep) char *shared = mo_path(a->dir, IMAGE_SHARED);
	const char *name;
	int64_t uid;

	if (!names)
		return errno == ENOENT ? 0 : mo_error_set(err, -errno, "%s", strerror(errno));
	int r = look_apart(a, shared, MO_NONE, err);

	while (r == 0 && (name = mo_dir_next(names)))
		if (mo_parse_i64(name, 1, UID_END - 1, &uid) == 0) {
			_cleanup_(mo_freep) char *path = mo_path(a->dir, "%s", name);

			r = look_apart(a, path, uid, err);
		}
	return r;
}
