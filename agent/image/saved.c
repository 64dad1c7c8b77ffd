/* See saved.h. The digest of its configuration is the id of the image. */
#include "agent/image/saved.h"

#include <string.h>

static int read_document(const char *archive, const char *name, const char *before,
			 const char *after, const struct mo_desc *desc, void *obj,
			 char **ret_digest, struct mo_error *err)
{
	_cleanup_(blob_close) struct blob b = { .fd = -1, .of = -1 };
	struct mo_error why = { 0 };
	int r = blob_open_entry(&b, archive, name, &why);

	if (r == 0)
		r = blob_document(&b, before, after, desc, obj, NULL, ret_digest, &why);
	if (r < 0)
		mo_error_set(err, r, "%s: %s", name, mo_error_text(&why, r));
	mo_error_done(&why);
	return r;
}

/* It is named by its digest: HEX.json, or blobs/sha256/HEX. */
static bool is_named_so(const char *name, const char *digest)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;

	return strncmp(last, digest + strlen("sha256:"), 64) == 0;
}

static int read_image(const struct saved_image *image, struct parts *ret, struct mo_error *err)
{
	const struct oci_rootfs *fs;
	_cleanup_(mo_freep) char *digest = NULL;

	if (!image->config || image->n_layers == 0 || image->n_layers > OCI_LAYERS_MAX)
		return mo_error_set(err, IMAGE_REFUSED,
				    "manifest.json names no configuration, or not 1 to %d layers",
				    OCI_LAYERS_MAX);
	int r = read_document(ret->archive, image->config, "", "", &oci_config_desc, &ret->config,
			      &digest, err);

	if (r < 0)
		return r;
	if (!is_named_so(image->config, digest))
		return mo_error_set(err, IMAGE_REFUSED,
				    "%s is damaged: its bytes have the digest "
				    "%s",
				    image->config, digest);
	fs = ret->config.rootfs;
	if (!fs || fs->n_diff_ids != image->n_layers)
		return mo_error_set(err, IMAGE_REFUSED,
				    "manifest.json and the configuration have not the same layers");
	ret->digest = mo_printf("id:%s", digest);
	for (size_t i = 0; i < image->n_layers; i++) {
		struct part *p;

		if (!image->layers[i] || !oci_digest_valid(fs->diff_ids[i]))
			return mo_error_set(err, IMAGE_REFUSED, "a layer has no sha256 digest");
		p = MO_GROW(ret->layers, ret->n_layers);
		/* what the layer is called the archive says, and not the image */
		*p = (struct part){ .name = mo_strdup(image->layers[i]),
				    .unpacked = mo_strdup(fs->diff_ids[i]),
				    .bytes = MO_NONE };
	}
	return 0;
}

int saved_read(const struct source *from, struct parts *ret, struct mo_error *err)
{
	_cleanup_(saved_images_done) struct saved_images all;

	mo_desc_init(&saved_images_desc, &all);
	ret->archive = mo_strdup(from->path);
	int r = read_document(from->path, "manifest.json", "{\"images\":", "}", &saved_images_desc,
			      &all, NULL, err);

	if (r == 0 && all.n_images != 1) {
		mo_error_set(err, IMAGE_REFUSED, "it has %zu images", all.n_images);
		mo_error_hint(err, "save one alone: docker save -o FILE IMAGE");
		return IMAGE_REFUSED;
	}
	return r < 0 ? r : read_image(&all.images[0], ret, err);
}
