/* See blob.h. */
#include "agent/image/blob.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "agent/core/image/oci.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

#define BLOCK_BYTES (64 * 1024)

static int begin(struct blob *b, struct mo_error *err)
{
	int r = gnutls_hash_init(&b->hash, GNUTLS_DIG_SHA256);

	return r == 0 ? 0
		      : mo_error_set(err, -EIO, "sha256 cannot be computed: %s",
				     gnutls_strerror(r));
}

/* Whether it is the source that has to be another one. */
static bool is_refusal(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -EPERM || r == -ELOOP ||
	       r == -ENAMETOOLONG;
}

/* A FIFO in its place keeps nobody waiting. A descriptor, or an error. */
static int open_file(int at, const char *name, struct mo_error *err)
{
	_cleanup_(mo_closep) int fd = mo_open_at(at, name, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return mo_error_set(err, is_refusal(fd) ? IMAGE_REFUSED : fd,
				    "%s cannot be opened: %s", name, strerror(-fd));
	int r = mo_stat_fd(fd, &st);

	if (r < 0)
		return mo_error_set(err, r, "%s cannot be looked at: %s", name, strerror(-r));
	if (!S_ISREG(st.st_mode))
		return mo_error_set(err, IMAGE_REFUSED, "%s is no regular file", name);
	return TAKE_FD(fd);
}

int blob_open(struct blob *b, int at, const char *name, int64_t bytes_said, struct mo_error *err)
{
	b->bytes_said = bytes_said;
	b->fd = open_file(at, name, err);
	return b->fd < 0 ? b->fd : begin(b, err);
}

static int archive_failure(struct archive *a, const char *path, struct mo_error *err)
{
	return mo_error_set(err, IMAGE_REFUSED, "%s cannot be read as an archive: %s", path,
			    archive_error_string(a) ? archive_error_string(a) : "it ends too soon");
}

/* Where a link of an archive leads, by its text: a layer that is there twice lies there once. */
static char *link_target(const char *name, const char *link)
{
	const char *slash = strrchr(name, '/');
	_cleanup_(mo_freep) char *path =
		mo_printf("/%.*s/%s", slash ? (int)(slash - name) : 0, name, link);
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);

	return mo_strdup(clean + 1);
}

/* b->in is at the entry; *ret_link is where it leads, NULL: it is a file. */
static int find_entry(struct blob *b, const char *archive, const char *name, char **ret_link,
		      struct mo_error *err)
{
	struct archive_entry *e;
	int r;

	b->in = archive_read_new();
	archive_read_support_format_tar(b->in);
	archive_read_support_filter_gzip(b->in);
	archive_read_support_filter_zstd(b->in);
	b->of = open_file(AT_FDCWD, archive, err);
	if (b->of < 0)
		return b->of;
	if (archive_read_open_fd(b->in, b->of, BLOCK_BYTES) != ARCHIVE_OK)
		return archive_failure(b->in, archive, err);
	while ((r = archive_read_next_header(b->in, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		const char *path = archive_entry_pathname(e), *link = archive_entry_symlink(e);

		if (!path || !mo_streq(mo_starts_with(path, "./") ? path + 2 : path, name))
			continue;
		b->bytes_said = archive_entry_size(e);
		if (link)
			*ret_link = link_target(name, link);
		else if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
			return mo_error_set(err, IMAGE_REFUSED, "%s in %s is no regular file", name,
					    archive);
		return 0;
	}
	if (r != ARCHIVE_EOF)
		return archive_failure(b->in, archive, err);
	return mo_error_set(err, IMAGE_REFUSED, "%s has no %s", archive, name);
}

int blob_open_entry(struct blob *b, const char *archive, const char *name, struct mo_error *err)
{
	_cleanup_(mo_freep) char *link = NULL, *further = NULL;
	int r;

	b->fd = b->of = -1;
	r = find_entry(b, archive, name, &link, err);
	if (r == 0 && link) {
		archive_read_free(TAKE_PTR(b->in));
		b->of = mo_close(b->of);
		r = find_entry(b, archive, link, &further, err);
	}
	if (r == 0 && further)
		return mo_error_set(err, IMAGE_REFUSED, "%s in %s is a link to a link", name,
				    archive);
	return r < 0 ? r : begin(b, err);
}

ssize_t blob_next(struct blob *b)
{
	ssize_t n = b->fd >= 0 ? mo_read(b->fd, b->piece, sizeof(b->piece))
			       : archive_read_data(b->in, b->piece, sizeof(b->piece));

	if (n < 0 && b->fd >= 0)
		b->failed =
			mo_error_set(&b->err, (int)n, "it cannot be read: %s", strerror((int)-n));
	else if (n < 0)
		b->failed = archive_failure(b->in, "it", &b->err);
	else if (b->bytes_said != MO_NONE && b->bytes + n > b->bytes_said)
		b->failed = mo_error_set(&b->err, IMAGE_REFUSED,
					 "it is larger than the %lld bytes "
					 "that the image says",
					 (long long)b->bytes_said);
	if (b->failed)
		return -1;
	b->bytes += n;
	gnutls_hash(b->hash, b->piece, (size_t)n);
	return n;
}

static int take_failure(struct blob *b, struct mo_error *err)
{
	return mo_error_set(err, b->failed, "%s", mo_error_text(&b->err, b->failed));
}

int blob_end(struct blob *b, const char *digest, char **ret_digest, struct mo_error *err)
{
	unsigned char sum[32];
	char hex[2 * sizeof(sum) + 1];
	ssize_t n;

	while ((n = blob_next(b)) > 0)
		continue;
	if (n < 0)
		return take_failure(b, err);
	if (b->bytes_said != MO_NONE && b->bytes != b->bytes_said)
		return mo_error_set(err, IMAGE_REFUSED, "it has %lld bytes, the image says %lld",
				    (long long)b->bytes, (long long)b->bytes_said);
	gnutls_hash_output(b->hash, sum);
	mo_hex(sum, sizeof(sum), hex);
	_cleanup_(mo_freep) char *seen = mo_printf("sha256:%s", hex);

	if (digest && !mo_streq(seen, digest))
		return mo_error_set(err, IMAGE_REFUSED,
				    "it is damaged: its bytes have the digest "
				    "%s, not %s",
				    seen, digest);
	if (ret_digest)
		*ret_digest = TAKE_PTR(seen);
	return 0;
}

int document_read(const char *text, size_t n, const struct mo_desc *desc, void *obj,
		  struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };

	if (wire_affordable(text, n, &why) < 0 || wire_decode(desc, text, n, false, obj, &why) < 0)
		return mo_error_set(err, IMAGE_REFUSED, "%s", mo_error_text(&why, -EINVAL));
	return 0;
}

int blob_document(struct blob *b, const char *before, const char *after, const struct mo_desc *desc,
		  void *obj, const char *digest, char **ret_digest, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	ssize_t n;

	mo_buf_str(&text, before);
	while ((n = blob_next(b)) > 0 && text.len <= OCI_DOCUMENT_MAX)
		mo_buf_add(&text, b->piece, (size_t)n);
	if (n < 0)
		return take_failure(b, err);
	if (n > 0)
		return mo_error_set(err, IMAGE_REFUSED, "it is larger than %lld bytes",
				    OCI_DOCUMENT_MAX);
	int r = blob_end(b, digest, ret_digest, err);

	mo_buf_str(&text, after);
	return r < 0 ? r : document_read(text.data, text.len, desc, obj, err);
}

void blob_close(struct blob *b)
{
	if (b->fd >= 0)
		mo_close(b->fd);
	if (b->in)
		archive_read_free(b->in);
	mo_close(b->of);
	if (b->hash)
		gnutls_hash_deinit(b->hash, NULL);
	mo_error_done(&b->err);
}
