/* An image before it is unpacked: what its source says, and where its layers are. */
#pragma once
#include "agent/core/image/oci.h"
#include "agent/core/image/source.h"
#include "agent/image/blob.h"

struct part {
	char *name; /* of its file, or of its entry in the archive */
	/* of its bytes, and of those unpacked: one at least */
	char *digest, *unpacked;
	int64_t bytes; /* MO_NONE: not known before */
};
struct parts {
	int dir;       /* of a layout; -1: none */
	char *archive; /* of `docker save`; NULL: none */
	/* "sha256:..." of its manifest; "id:sha256:..." of its configuration where there is none */
	char *digest;
	struct oci_config config;
	struct part *layers; /* the lowest first */
	size_t n_layers;
};
/* For this architecture. 0, or an error; parts_done() in any case. */
int parts_read(const struct source *from, const char *architecture, struct parts *ret,
	       struct mo_error *err);
void parts_done(struct parts *p);
/* The bytes of layer i; blob_close() in any case. */
int parts_open(const struct parts *p, size_t i, struct blob *b, struct mo_error *err);
