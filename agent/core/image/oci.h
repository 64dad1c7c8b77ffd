/* What lies in an OCI image layout (image specification 1.1) and in what `docker save` writes: the
 * documents, and which of several images is meant. Pure. The documents are somebody's: nothing in
 * them is trusted, and what is not looked at is passed over. */
#pragma once
#include <errno.h>

#include "lib/base/desc.h"
#include "lib/base/error.h"
#include "lib/model/reference.h"

#define OCI_DOCUMENT_MAX (4LL * 1024 * 1024) /* bytes of each of them */
#define OCI_LAYERS_MAX 512

struct oci_platform {
	char *os, *architecture; /* as Go names them: linux, amd64 */
};
struct oci_annotations {
	char *tag; /* NULL: none */
};
struct oci_descriptor {
	char *media_type, *digest;
	int64_t size;
	struct oci_platform *platform; /* NULL: it does not say */
	struct oci_annotations *annotations;
};
/* index.json, an image index, a manifest list of Docker's. */
struct oci_index {
	int64_t version; /* of the form */
	struct oci_descriptor *manifests;
	size_t n_manifests;
};
#define OCI_INDEX_VERSION 2
struct oci_manifest {
	char *media_type; /* NULL: it does not say */
	struct oci_descriptor *config;
	struct oci_descriptor *layers; /* the lowest first */
	size_t n_layers;
};
struct oci_process {
	char **env; /* NAME=VALUE */
	size_t n_env;
	char *workdir;
};
struct oci_rootfs {
	char **diff_ids; /* digests of the layers, not compressed */
	size_t n_diff_ids;
};
struct oci_config {
	char *os, *architecture;
	struct oci_process *process;
	struct oci_rootfs *rootfs;
};
/* One of manifest.json in what `docker save` writes. */
struct saved_image {
	char *config;
	char **tags;
	size_t n_tags;
	char **layers; /* names in the archive, the lowest first */
	size_t n_layers;
};
struct saved_images {
	struct saved_image *images;
	size_t n_images;
};
extern const struct mo_desc oci_index_desc, oci_manifest_desc, oci_config_desc, saved_images_desc;
MO_DEFINE_DONE(oci_index)
MO_DEFINE_DONE(oci_manifest)
MO_DEFINE_DONE(oci_config)
MO_DEFINE_DONE(saved_images)

/* amd64 for the x86_64 of uname(2); what is unknown stays as it is. */
const char *oci_architecture(const char *machine);
/* The index names it so, and nothing else by this tag (NULL: by none). */
void oci_index_put(struct oci_index *index, const char *tag, const char *digest, int64_t bytes,
		   const char *media_type);
bool oci_is_index(const struct oci_descriptor *d);
/* The one that is meant: the tag (NULL: any) and the architecture. Else NULL, and err says what
 * there is. */
const struct oci_descriptor *oci_choose(const struct oci_index *index, const char *tag,
					const char *architecture, struct mo_error *err);
/* 0, or IMAGE_REFUSED: layers and configuration are of kinds and sizes that can be unpacked. */
int oci_manifest_check(const struct oci_manifest *m, struct mo_error *err);
/* 0, or IMAGE_REFUSED: it is for another operating system or architecture. */
int oci_config_check(const struct oci_config *c, const char *architecture, struct mo_error *err);
