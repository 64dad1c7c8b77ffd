/* An OCI image layout: a directory with index.json and blobs by their digests. */
#pragma once
#include "agent/image/parts.h"

int layout_read(const struct source *from, const char *architecture, struct parts *ret,
		struct mo_error *err);
/* index.json of the layout. */
int layout_index(int dir, struct oci_index *ret, struct mo_error *err);
/* Where a blob lies in a layout; caller frees. */
char *layout_blob_name(const char *digest);
/* The document at d, whose digest is valid. */
int layout_document(int dir, const struct oci_descriptor *d, const char *what,
		    const struct mo_desc *desc, void *obj, struct mo_error *err);
