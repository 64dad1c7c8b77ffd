/* See layout.h. */
#include "agent/image/layout.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"

/* indexes that lie in indexes */
#define DEEPEST 4

char *layout_blob_name(const char *digest)
{
	return mo_printf("blobs/sha256/%s", digest + strlen("sha256:"));
}

static int explain(const char *what, int r, struct mo_error *why, struct mo_error *err)
{
	if (r < 0)
		mo_error_set(err, r, "%s: %s", what, mo_error_text(why, r));
	mo_error_done(why);
	return r;
}

int layout_document(int dir, const struct oci_descriptor *d, const char *what,
		    const struct mo_desc *desc, void *obj, struct mo_error *err)
{
	_cleanup_(blob_close) struct blob b = { .fd = -1, .of = -1 };
	_cleanup_(mo_freep) char *name = layout_blob_name(d->digest);
	struct mo_error why = { 0 };
	int r = blob_open(&b, dir, name, d->size, &why);

	if (r == 0)
		r = blob_document(&b, "", "", desc, obj, d->digest, NULL, &why);
	return explain(what, r, &why, err);
}

int layout_index(int dir, struct oci_index *ret, struct mo_error *err)
{
	_cleanup_(blob_close) struct blob b = { .fd = -1, .of = -1 };
	struct mo_error why = { 0 };
	int r = blob_open(&b, dir, "index.json", MO_NONE, &why);

	if (r == 0)
		r = blob_document(&b, "", "", &oci_index_desc, ret, NULL, NULL, &why);
	return explain("it is no OCI image layout", r, &why, err);
}

static int check_descriptor(const struct oci_descriptor *d, struct mo_error *err)
{
	return oci_digest_valid(d->digest) && d->size >= 0
		       ? 0
		       : mo_error_set(err, IMAGE_REFUSED,
				      "its index names an image without a sha256 digest or a size");
}

/* The document of that digest as an index: its own, when it is one, or with it alone. */
static int index_of(int dir, const char *digest, struct oci_index *ret, struct mo_error *err)
{
	struct oci_descriptor d = { .digest = (char *)(uintptr_t)digest, .size = MO_NONE };
	_cleanup_(mo_freep) char *name = layout_blob_name(digest);
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0)
		return mo_error_set(err, IMAGE_REFUSED, "it does not hold the image %s: %s", digest,
				    strerror(errno));
	int r = layout_document(dir, &d, "the image", &oci_index_desc, ret, err);

	if (r == 0 && ret->n_manifests == 0)
		oci_index_put(ret, NULL, digest, (int64_t)st.st_size, NULL);
	return r;
}

/* From the index to the manifest that is meant: *ret, and its digest. */
static int find_manifest(int dir, const struct source *from, const char *architecture,
			 struct oci_manifest *ret, char **ret_digest, struct mo_error *err)
{
	_cleanup_(oci_index_done) struct oci_index index;
	const char *tag = from->digest ? NULL : from->tag;

	mo_desc_init(&oci_index_desc, &index);
	int r = from->digest ? index_of(dir, from->digest, &index, err)
			     : layout_index(dir, &index, err);

	for (int depth = 0; r == 0; depth++) {
		const struct oci_descriptor *d = oci_choose(&index, tag, architecture, err);

		r = d ? check_descriptor(d, err) : IMAGE_REFUSED;
		if (r == 0 && !oci_is_index(d)) {
			*ret_digest = mo_strdup(d->digest);
			return layout_document(dir, d, "its manifest", &oci_manifest_desc, ret,
					       err);
		}
		if (r == 0 && depth == DEEPEST)
			r = mo_error_set(err, IMAGE_REFUSED, "its indexes are nested too deep");
		if (r < 0)
			return r;
		_cleanup_(oci_index_done) struct oci_index inner;

		mo_desc_init(&oci_index_desc, &inner);
		r = layout_document(dir, d, "an index of it", &oci_index_desc, &inner, err);
		mo_desc_copy(&oci_index_desc, &index, &inner);
		tag = NULL;
	}
	return r;
}

int layout_read(const struct source *from, const char *architecture, struct parts *ret,
		struct mo_error *err)
{
	struct oci_manifest m;

	mo_desc_init(&oci_manifest_desc, &m);
	ret->dir = mo_open_at(AT_FDCWD, from->path, O_RDONLY | O_DIRECTORY, 0);
	int r = ret->dir >= 0 ? 0
			      : mo_error_set(err, IMAGE_REFUSED, "it cannot be opened: %s",
					     strerror(-ret->dir));

	if (r == 0)
		r = find_manifest(ret->dir, from, architecture, &m, &ret->digest, err);
	if (r == 0)
		r = oci_manifest_check(&m, err);
	if (r == 0)
		r = layout_document(ret->dir, m.config, "its configuration", &oci_config_desc,
				    &ret->config, err);
	for (size_t i = 0; r == 0 && i < m.n_layers; i++) {
		struct part *p = MO_GROW(ret->layers, ret->n_layers);

		p->name = layout_blob_name(m.layers[i].digest);
		p->digest = mo_strdup(m.layers[i].digest);
		p->bytes = m.layers[i].size;
	}
	oci_manifest_done(&m);
	return r;
}
