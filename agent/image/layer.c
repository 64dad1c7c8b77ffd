/* See layer.h. */
#include "agent/image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "agent/core/image/oci.h"
#include "lib/base/utf8.h"

static la_ssize_t give(struct archive *a, void *of, const void **ret)
{
	struct blob *b = of;

	*ret = b->piece;
	return blob_next(b);
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

static struct archive *open_archive(struct blob *b)
{
	struct archive *a = archive_read_new();

	archive_read_support_format_tar(a);
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_zstd(a);
	(void)archive_read_open(a, b, NULL, give, NULL);
	return a;
}

int layer_unpack(struct blob *b, struct tree *t, struct entry_sum *sum, struct mo_error *err)
{
	struct archive *a = open_archive(b);
	struct mo_error why = { 0 };
	struct archive_entry *e;
	int r = 0, seen = ARCHIVE_OK;

	while (r == 0) {
		seen = archive_read_next_header(a, &e);
		if (seen != ARCHIVE_OK && seen != ARCHIVE_WARN)
			break;
		r = take(a, e, t, sum, &why);
	}
	if (r == 0 && seen != ARCHIVE_EOF)
		r = mo_error_set(&why, IMAGE_REFUSED, "it is no whole tar archive: %s",
				 archive_error_string(a) ? archive_error_string(a) : "");
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
