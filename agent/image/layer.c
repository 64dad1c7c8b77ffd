/* See layer.h. */
#include "agent/image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "agent/core/image/oci.h"
#include "lib/base/hex.h"

/* The archive's bytes, unpacked: of them a configuration knows the digest. */
struct plain {
	struct archive *packed;
	gnutls_hash_hd_t hash; /* NULL: nobody asks */
	int64_t bytes;
	char piece[64 * 1024];
};

static la_ssize_t give_packed(struct archive *a, void *of, const void **ret)
{
	struct blob *b = of;

	*ret = b->piece;
	return blob_next(b);
}

static la_ssize_t give(struct archive *a, void *of, const void **ret)
{
	struct plain *p = of;
	la_ssize_t n = archive_read_data(p->packed, p->piece, sizeof(p->piece));
	const char *why = archive_error_string(p->packed);

	*ret = p->piece;
	if (n < 0 && a)
		archive_set_error(a, EIO, "%s", why ? why : "its bytes are damaged");
	if (n > 0 && p->hash)
		gnutls_hash(p->hash, p->piece, (size_t)n);
	p->bytes += MO_MAX(n, 0);
	return n;
}

static enum entry_kind kind_of(struct archive_entry *e)
{
	if (archive_entry_hardlink(e))
		return ENTRY_HARDLINK;
	switch (archive_entry_filetype(e)) {
	case AE_IFDIR: return ENTRY_DIRECTORY;
	case AE_IFREG: return ENTRY_FILE;
	case AE_IFLNK: return ENTRY_SYMLINK;
	default: return ENTRY_NONE;
	}
}

static int take(struct archive *a, struct archive_entry *e, struct tree *t, struct entry_sum *sum,
		struct mo_error *err)
{
	_cleanup_(entry_done) struct entry entry = { 0 };
	struct entry_said said = {
		.kind = kind_of(e),
		.path = archive_entry_pathname(e),
		.mode = archive_entry_perm(e),
		.bytes = archive_entry_size_is_set(e) ? archive_entry_size(e) : 0,
	};

	said.link =
		said.kind == ENTRY_HARDLINK ? archive_entry_hardlink(e) : archive_entry_symlink(e);
	if (!said.path)
		return mo_error_set(err, IMAGE_REFUSED, "a name in it is no UTF-8");
	int r = entry_count(sum, said.bytes, err);

	if (r == 0)
		r = entry_read(&said, &entry, err);
	return r < 0 ? r : tree_apply(t, &entry, a, said.bytes, archive_entry_mtime(e), err);
}

static int open_plain(struct blob *b, bool hashed, struct plain *p, struct mo_error *err)
{
	struct archive_entry *e;

	p->packed = archive_read_new();
	archive_read_support_format_raw(p->packed);
	archive_read_support_filter_gzip(p->packed);
	archive_read_support_filter_zstd(p->packed);
	if (hashed && gnutls_hash_init(&p->hash, GNUTLS_DIG_SHA256) != 0)
		return mo_error_set(err, -EIO, "sha256 cannot be computed");
	if (archive_read_open(p->packed, b, NULL, give_packed, NULL) != ARCHIVE_OK ||
	    archive_read_next_header(p->packed, &e) != ARCHIVE_OK)
		return mo_error_set(err, IMAGE_REFUSED, "it is no whole tar archive");
	return 0;
}

static void close_plain(struct plain *p)
{
	archive_read_free(p->packed);
	if (p->hash)
		gnutls_hash_deinit(p->hash, NULL);
}

/* Behind the last entry comes little; what unpacks to more than an image may have is no tar. */
static int compare(struct plain *p, const char *digest, int64_t bytes_max, struct mo_error *err)
{
	int64_t before = p->bytes;
	unsigned char sum[32];
	char hex[2 * sizeof(sum) + 1];
	const void *unused;
	la_ssize_t n;

	while ((n = give(NULL, p, &unused)) > 0)
		if (p->bytes - before > bytes_max)
			return mo_error_set(err, IMAGE_REFUSED, "it does not end");
	if (n < 0)
		return mo_error_set(err, IMAGE_REFUSED, "it is no whole tar archive: %s",
				    archive_error_string(p->packed));
	gnutls_hash_output(p->hash, sum);
	mo_hex(sum, sizeof(sum), hex);
	if (!mo_streq(hex, digest + strlen("sha256:")))
		return mo_error_set(err, IMAGE_REFUSED,
				    "it is damaged: its bytes have the digest sha256:%s, not %s",
				    hex, digest);
	return 0;
}

static int unpack_entries(struct archive *a, struct tree *t, struct entry_sum *sum,
			  struct mo_error *err)
{
	struct archive_entry *e;
	int r = 0, seen = ARCHIVE_OK;

	while (r == 0) {
		seen = archive_read_next_header(a, &e);
		if (seen != ARCHIVE_OK && seen != ARCHIVE_WARN)
			break;
		r = take(a, e, t, sum, err);
	}
	if (r == 0 && seen != ARCHIVE_EOF)
		r = mo_error_set(err, IMAGE_REFUSED, "it is no whole tar archive: %s",
				 archive_error_string(a) ? archive_error_string(a) : "");
	return r;
}

int layer_unpack(struct blob *b, const char *digest, struct tree *t, struct entry_sum *sum,
		 struct mo_error *err)
{
	_cleanup_(close_plain) struct plain p = { 0 };
	struct archive *a = archive_read_new();
	struct mo_error why = { 0 };
	int r = open_plain(b, digest != NULL, &p, &why);

	archive_read_support_format_tar(a);
	if (r == 0) {
		(void)archive_read_open(a, &p, NULL, give, NULL);
		r = unpack_entries(a, t, sum, &why);
	}
	if (r == 0 && digest)
		r = compare(&p, digest, sum->bytes_max, &why);
	/* what the library says of bytes that could not be read is not the cause */
	if (b->failed)
		r = mo_error_set(err, b->failed, "%s", mo_error_text(&b->err, b->failed));
	else if (r < 0)
		mo_error_set(err, r, "%s", mo_error_text(&why, r));
	if (why.hint && err && !err->hint)
		mo_error_hint(err, "%s", why.hint);
	mo_error_done(&why);
	archive_read_free(a);
	tree_next_layer(t);
	return r;
}
