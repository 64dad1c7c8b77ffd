/* See parts.h. */
#include "agent/image/parts.h"

#include <errno.h>
#include <string.h>

#include "agent/image/layout.h"
#include "agent/image/saved.h"
#include "lib/base/fd.h"

int parts_read(const struct source *from, const char *architecture, struct parts *ret,
	       struct mo_error *err)
{
	*ret = (struct parts){ .dir = -1 };
	mo_desc_init(&oci_config_desc, &ret->config);
	int r = from->kind == SOURCE_LAYOUT ? layout_read(from, architecture, ret, err)
					    : saved_read(from, ret, err);

	if (r == 0 && from->digest && from->kind == SOURCE_SAVED &&
	    !mo_streq(from->digest, ret->digest))
		return mo_error_set(err, IMAGE_REFUSED, "it holds the image %s, and %s is meant",
				    ret->digest, from->digest);
	return r < 0 ? r : oci_config_check(&ret->config, architecture, err);
}

void parts_done(struct parts *p)
{
	mo_close(p->dir);
	for (size_t i = 0; i < p->n_layers; i++) {
		free(p->layers[i].name);
		free(p->layers[i].digest);
		free(p->layers[i].unpacked);
	}
	free(p->layers);
	free(p->archive);
	free(p->digest);
	oci_config_done(&p->config);
}

int parts_open(const struct parts *p, size_t i, struct blob *b, struct mo_error *err)
{
	const struct part *l = &p->layers[i];

	return p->archive ? blob_open_entry(b, p->archive, l->name, err)
			  : blob_open(b, p->dir, l->name, l->bytes, err);
}
