/* See oci.h. */
#include "agent/core/image/oci.h"

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/utf8.h"

static const struct mo_field oci_platform_fields[] = {
	MO_D(oci_platform, os, MO_STR, "operating system"),
	MO_D(oci_platform, architecture, MO_STR, "architecture"),
};
static const struct mo_desc oci_platform_desc = MO_DESC(oci_platform, oci_platform_fields);
static const struct mo_field oci_annotations_fields[] = {
	MO_DN(oci_annotations, tag, "org.opencontainers.image.ref.name", MO_STR, "its tag"),
};
static const struct mo_desc oci_annotations_desc = MO_DESC(oci_annotations, oci_annotations_fields);
static const struct mo_field oci_descriptor_fields[] = {
	MO_DN(oci_descriptor, media_type, "mediaType", MO_STR, "kind"),
	MO_D(oci_descriptor, digest, MO_STR, "digest"),
	MO_D(oci_descriptor, size, MO_INT, "bytes"),
	MO_D_SUB(oci_descriptor, platform, MO_OPT, &oci_platform_desc, "what it runs on",
		 .omit = true),
	MO_D_SUB(oci_descriptor, annotations, MO_OPT, &oci_annotations_desc, "notes", .omit = true),
};
static const struct mo_desc oci_descriptor_desc = MO_DESC(oci_descriptor, oci_descriptor_fields);
static const struct mo_field oci_index_fields[] = {
	MO_DN(oci_index, version, "schemaVersion", MO_INT, "version of its form", .omit = true),
	MO_D_VEC(oci_index, manifests, &oci_descriptor_desc, "images"),
};
const struct mo_desc oci_index_desc = MO_DESC(oci_index, oci_index_fields);
static const struct mo_field oci_manifest_fields[] = {
	MO_DN(oci_manifest, media_type, "mediaType", MO_STR, "kind"),
	MO_D_SUB(oci_manifest, config, MO_OPT, &oci_descriptor_desc, "configuration"),
	MO_D_VEC(oci_manifest, layers, &oci_descriptor_desc, "layers, the lowest first"),
};
const struct mo_desc oci_manifest_desc = MO_DESC(oci_manifest, oci_manifest_fields);
static const struct mo_field oci_process_fields[] = {
	MO_DN(oci_process, env, "Env", MO_STRS, "NAME=VALUE",
	      .count_offset = offsetof(struct oci_process, n_env)),
	MO_DN(oci_process, workdir, "WorkingDir", MO_STR, "directory that it is started in"),
};
static const struct mo_desc oci_process_desc = MO_DESC(oci_process, oci_process_fields);
static const struct mo_field oci_rootfs_fields[] = {
	MO_D_LIST(oci_rootfs, diff_ids, MO_STRS, "digests of the layers, not compressed"),
};
static const struct mo_desc oci_rootfs_desc = MO_DESC(oci_rootfs, oci_rootfs_fields);
static const struct mo_field oci_config_fields[] = {
	MO_D(oci_config, os, MO_STR, "operating system"),
	MO_D(oci_config, architecture, MO_STR, "architecture"),
	MO_DN(oci_config, process, "config", MO_OPT, "what it would run", .sub = &oci_process_desc),
	MO_D_SUB(oci_config, rootfs, MO_OPT, &oci_rootfs_desc, "its layers"),
};
const struct mo_desc oci_config_desc = MO_DESC(oci_config, oci_config_fields);
static const struct mo_field saved_image_fields[] = {
	MO_DN(saved_image, config, "Config", MO_STR, "name of its configuration"),
	MO_DN(saved_image, tags, "RepoTags", MO_STRS, "its names",
	      .count_offset = offsetof(struct saved_image, n_tags)),
	MO_DN(saved_image, layers, "Layers", MO_STRS, "names of its layers",
	      .count_offset = offsetof(struct saved_image, n_layers)),
};
static const struct mo_desc saved_image_desc = MO_DESC(saved_image, saved_image_fields);
static const struct mo_field saved_images_fields[] = {
	MO_D_VEC(saved_images, images, &saved_image_desc, "images"),
};
const struct mo_desc saved_images_desc = MO_DESC(saved_images, saved_images_fields);

const char *oci_architecture(const char *machine)
{
	if (mo_streq(machine, "x86_64"))
		return "amd64";
	return mo_streq(machine, "aarch64") ? "arm64" : machine;
}

bool oci_is_index(const struct oci_descriptor *d)
{
	return mo_streq(d->media_type, "application/vnd.oci.image.index.v1+json") ||
	       mo_streq(d->media_type, "application/vnd.docker.distribution.manifest.list.v2+json");
}

void oci_index_put(struct oci_index *index, const char *tag, const char *digest, int64_t bytes,
		   const char *media_type)
{
	struct oci_descriptor *d;

	for (size_t i = index->n_manifests; i-- > 0;) {
		const struct oci_annotations *a = index->manifests[i].annotations;

		if (mo_streq(a ? a->tag : NULL, tag))
			mo_vec_remove(&oci_descriptor_desc, index->manifests, &index->n_manifests,
				      i);
	}
	index->version = OCI_INDEX_VERSION;
	d = MO_ADD(index, manifests, &oci_descriptor_desc);
	mo_str_set(&d->media_type,
		   media_type ? media_type : "application/vnd.oci.image.manifest.v1+json");
	mo_str_set(&d->digest, digest);
	d->size = bytes;
	if (!tag)
		return;
	d->annotations = mo_desc_new(&oci_annotations_desc);
	mo_str_set(&d->annotations->tag, tag);
}

static bool is_tagged(const struct oci_descriptor *d, const char *tag)
{
	return !tag || (d->annotations && mo_streq(d->annotations->tag, tag));
}

/* What says nothing may be of any. */
static bool fits(const struct oci_descriptor *d, const char *architecture)
{
	const struct oci_platform *p = d->platform;

	return !p || ((!p->os || mo_streq(p->os, "linux")) &&
		      (!p->architecture || mo_streq(p->architecture, architecture)));
}

/* A list of those that is_tagged(): "amd64", "v1", "amd64 v1". */
static char *what_there_is(const struct oci_index *index, const char *tag)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < index->n_manifests && b.len < 400; i++) {
		const struct oci_descriptor *d = &index->manifests[i];
		const char *of =
			d->platform && d->platform->architecture ? d->platform->architecture : "";
		const char *named =
			d->annotations && d->annotations->tag ? d->annotations->tag : "";

		if (is_tagged(d, tag) && (*of || *named))
			mo_buf_printf(&b, "%s%.*s%s%.*s", b.len ? ", " : "", mo_utf8_shown(of, 40),
				      of, *of && *named ? " " : "", mo_utf8_shown(named, 128),
				      named);
	}
	return mo_buf_take(&b);
}

const struct oci_descriptor *oci_choose(const struct oci_index *index, const char *tag,
					const char *architecture, struct mo_error *err)
{
	_cleanup_(mo_freep) char *there = what_there_is(index, NULL);
	const struct oci_descriptor *found = NULL;
	size_t n_tagged = 0, n = 0;

	for (size_t i = 0; i < index->n_manifests; i++) {
		const struct oci_descriptor *d = &index->manifests[i];

		n_tagged += is_tagged(d, tag);
		if (!is_tagged(d, tag) || !fits(d, architecture))
			continue;
		found = d;
		n++;
	}
	if (n == 1)
		return found;
	if (index->n_manifests == 0)
		mo_error_set(err, IMAGE_REFUSED, "it has no image");
	else if (n_tagged == 0)
		mo_error_set(err, IMAGE_REFUSED, "it has no image with the tag %s (there is: %s)",
			     tag, there);
	else if (n == 0)
		mo_error_set(err, IMAGE_REFUSED, "it has no image for linux on %s (there is: %s)",
			     architecture, there);
	else {
		mo_error_set(err, IMAGE_REFUSED, "it has %zu images for %s (%s)", n, architecture,
			     there);
		mo_error_hint(err, "name one by its tag, as in oci:DIR:TAG");
	}
	return NULL;
}

/* 0, or IMAGE_REFUSED: a layer that is a tar archive, as it is or compressed. */
static int layer_check(const struct oci_descriptor *d, struct mo_error *err)
{
	static const char *const ends[] = { ".tar", ".tar+gzip", ".tar+zstd", ".tar.gzip",
					    ".tar.zstd" };
	const char *type = d->media_type ? d->media_type : "";

	for (size_t i = 0; i < ELEMENTSOF(ends); i++)
		if (strlen(type) > strlen(ends[i]) &&
		    mo_streq(type + strlen(type) - strlen(ends[i]), ends[i]))
			return 0;
	return mo_error_set(err, IMAGE_REFUSED, "a layer is no tar archive but '%.*s'",
			    mo_utf8_shown(type, 128), type);
}

static int descriptor_check(const struct oci_descriptor *d, const char *what, struct mo_error *err)
{
	if (!oci_digest_valid(d->digest))
		return mo_error_set(err, IMAGE_REFUSED, "%s has no sha256 digest", what);
	if (d->size < 0)
		return mo_error_set(err, IMAGE_REFUSED, "%s has no size", what);
	return 0;
}

int oci_manifest_check(const struct oci_manifest *m, struct mo_error *err)
{
	int r;

	if (!m->config || m->n_layers == 0)
		return mo_error_set(err, IMAGE_REFUSED,
				    "its manifest names no configuration or no layers");
	if (m->n_layers > OCI_LAYERS_MAX)
		return mo_error_set(err, IMAGE_REFUSED, "it has more than %d layers",
				    OCI_LAYERS_MAX);
	r = descriptor_check(m->config, "its configuration", err);
	for (size_t i = 0; i < m->n_layers && r == 0; i++) {
		r = descriptor_check(&m->layers[i], "a layer", err);
		if (r == 0)
			r = layer_check(&m->layers[i], err);
	}
	return r;
}

int oci_config_check(const struct oci_config *c, const char *architecture, struct mo_error *err)
{
	if (c->os && !mo_streq(c->os, "linux"))
		return mo_error_set(err, IMAGE_REFUSED, "it is for %.*s, not for linux",
				    mo_utf8_shown(c->os, 40), c->os);
	if (c->architecture && !mo_streq(c->architecture, architecture))
		return mo_error_set(err, IMAGE_REFUSED, "it is for %.*s, this node is %s",
				    mo_utf8_shown(c->architecture, 40), c->architecture,
				    architecture);
	return 0;
}
