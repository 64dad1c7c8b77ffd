/* See download.h. What is not whole yet is blobs/sha256/HEX.partial: it stays when this process
 * ends, and the next one goes on with it. */
#include "agent/image/download.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "agent/image/layout.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"

#define TRIES 5 /* in a row that brought nothing new */
#define REST_MS 250
#define REST_MAX_MS 8000
#define SAY_US 1000000

struct file {
	int fd;
	gnutls_hash_hd_t hash; /* of what is in it */
	int64_t bytes, most;
	bool asked; /* and not a byte of the answer has come */
	struct progress *progress;
};

static void say(struct progress *p, bool now)
{
	int64_t us = mo_clock_boot_us();

	if (!now && us - p->said_us < SAY_US)
		return;
	p->said_us = us;
	printf("%lld of %lld bytes\n", (long long)p->done, (long long)p->all);
	fflush(stdout);
}

static void count(struct file *f, const char *data, size_t n)
{
	gnutls_hash(f->hash, data, n);
	f->bytes += (int64_t)n;
	f->progress->done += (int64_t)n;
}

/* As if it were empty. */
static int begin_again(struct file *f)
{
	unsigned char unused[32];

	gnutls_hash_output(f->hash, unused); /* and resets it */
	f->progress->done -= f->bytes;
	f->bytes = 0;
	return mo_truncate(f->fd, 0);
}

static int take(void *arg, bool from_the_start, const char *data, size_t n)
{
	struct file *f = arg;
	/* who was asked for the middle may send all */
	int r = f->asked && from_the_start && f->bytes > 0 ? begin_again(f) : 0;

	f->asked = false;
	if (r == 0 && (int64_t)n > f->most - f->bytes)
		r = -EFBIG;
	if (r == 0)
		r = mo_write_all(f->fd, data, n);
	if (r < 0)
		return r;
	count(f, data, n);
	say(f->progress, false);
	return 0;
}

/* What is in the file already. */
static int read_all(struct file *f)
{
	char piece[64 * 1024];
	ssize_t n;

	while ((n = mo_read(f->fd, piece, sizeof(piece))) > 0)
		count(f, piece, (size_t)n);
	return (int)n;
}

static bool has_digest(const struct file *f, const char *digest)
{
	gnutls_hash_hd_t copy = gnutls_hash_copy(f->hash);
	unsigned char sum[32];
	char hex[2 * sizeof(sum) + 1];

	if (!copy)
		return false;
	gnutls_hash_deinit(copy, sum);
	mo_hex(sum, sizeof(sum), hex);
	return mo_streq(hex, digest + strlen("sha256:"));
}

static bool may_try_again(int r)
{
	return r == -EAGAIN || r == -ESPIPE || r == -EFBIG || r == -EBADE;
}

/* All of it is there, and is what was asked for; or -EAGAIN, or -EBADE: it is something else. */
static int ask_once(struct registry *from, const struct oci_descriptor *d, struct file *f,
		    struct mo_error *err)
{
	int r = 0;

	if (f->bytes < f->most || f->most == 0) {
		f->asked = true;
		r = registry_blob(from, d->digest, f->bytes, take, f, err);
	}
	if (r == -EFBIG)
		return mo_error_set(err, r, "it is larger than the image says");
	if (r < 0 || (f->bytes == f->most && has_digest(f, d->digest)))
		return r;
	return f->bytes < f->most ? mo_error_set(err, -EAGAIN, "the answer ended too soon")
				  : mo_error_set(err, -EBADE, "its bytes have another digest");
}

static int ask(struct registry *from, const struct oci_descriptor *d, struct file *f,
	       struct mo_error *err)
{
	int rest_ms = REST_MS, r = -EAGAIN;
	int64_t most = f->bytes; /* that were ever there */

	for (int tries = 0; tries < TRIES;) {
		mo_error_done(err);
		r = ask_once(from, d, f, err);
		tries = f->bytes > most ? 0 : tries + 1;
		most = MO_MAX(most, f->bytes);
		if (!may_try_again(r))
			break;
		if (r != -EAGAIN && begin_again(f) < 0)
			break;
		if (tries > 0 && tries < TRIES)
			mo_clock_rest_ms(rest_ms);
		rest_ms = tries > 0 ? MO_MIN(2 * rest_ms, REST_MAX_MS) : REST_MS;
	}
	return r < 0 ? mo_error_set(err, r, "%s", strerror(-r)) : 0;
}

static int finish(int dir, const struct file *f, const char *from, const char *to)
{
	int r = mo_sync(f->fd, false);

	return r < 0 ? r : renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

/* The blob is there, whole: its bytes are counted. */
static int look(int dir, const char *name, const struct oci_descriptor *d, struct progress *p)
{
	_cleanup_(mo_closep) int fd = mo_open_at(dir, name, O_RDONLY | O_NONBLOCK, 0);
	struct file f = { .fd = fd, .most = d->size, .progress = p };
	int64_t before = p->done;
	int r = fd < 0 ? fd : 0;

	if (r == 0 && gnutls_hash_init(&f.hash, GNUTLS_DIG_SHA256) != 0)
		r = -EIO;
	if (r < 0)
		return r;
	r = read_all(&f) == 0 && f.bytes == f.most && has_digest(&f, d->digest) ? 0 : -ENOENT;
	gnutls_hash_deinit(f.hash, NULL);
	if (r < 0)
		p->done = before;
	return r;
}

static int load(struct registry *from, int dir, const char *name, const struct oci_descriptor *d,
		struct progress *p, struct mo_error *err)
{
	_cleanup_(mo_freep) char *partial = mo_printf("%s.partial", name);
	_cleanup_(mo_closep) int fd =
		mo_open_at(dir, partial, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0644);
	struct file f = { .fd = fd, .most = d->size, .progress = p };
	int r = fd < 0 ? fd : 0;

	if (r == 0 && gnutls_hash_init(&f.hash, GNUTLS_DIG_SHA256) != 0)
		r = -EIO;
	if (r < 0)
		return mo_error_set(err, r, "%s cannot be made: %s", partial, strerror(-r));
	r = read_all(&f);
	if (r == 0 && f.bytes > f.most)
		r = begin_again(&f);
	if (r < 0)
		mo_error_set(err, r, "%s cannot be read: %s", partial, strerror(-r));
	else
		r = ask(from, d, &f, err);
	if (r == 0) {
		r = finish(dir, &f, partial, name);
		if (r < 0)
			mo_error_set(err, r, "%s cannot be written: %s", name, strerror(-r));
	}
	gnutls_hash_deinit(f.hash, NULL);
	say(p, true);
	return r;
}

int download(struct registry *from, int dir, const struct oci_descriptor *d, struct progress *p,
	     struct mo_error *err)
{
	_cleanup_(mo_freep) char *name = layout_blob_name(d->digest);

	if (look(dir, name, d, p) == 0)
		return 0;
	return load(from, dir, name, d, p, err);
}
