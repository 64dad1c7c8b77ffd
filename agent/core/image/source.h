/* Where an image comes from, as a person writes it. Pure. */
#pragma once
#include "lib/base/error.h"

enum source_kind {
	SOURCE_LAYOUT, /* oci:DIR[:TAG][@DIGEST], an OCI image layout */
	SOURCE_SAVED,  /* docker-archive:FILE, what `docker save` writes */
};
struct source {
	enum source_kind kind;
	char *path, *tag; /* tag NULL: none was named */
	/* the manifest that is meant, whatever the tag says (of an archive its image's id); NULL:
	 * any */
	char *digest;
};
void source_done(struct source *s);
/* 0, or IMAGE_REFUSED with err. */
int source_read(const char *text, struct source *ret, struct mo_error *err);
