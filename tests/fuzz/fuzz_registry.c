/* Any bytes as what a registry or an image says: names in layers never lead upwards, what has been
 * read of a document is within its limits, and a challenge or a name of any form ends well.
 * ROOMS: acore wire model base */
#include <stdlib.h>
#include <string.h>

#include "agent/core/image/challenge.h"
#include "agent/core/image/entry.h"
#include "agent/core/image/oci.h"
#include "lib/model/reference.h"
#include "agent/core/image/source.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A name that is looked up from the root of the image. */
static void check_path(const char *dir, const char *name)
{
	_cleanup_(mo_freep) char *path = mo_printf("/%s/%s/", dir, name ? name : "x");

	if (dir[0] == '/' || strstr(path, "/../") || (name && strchr(name, '/')) ||
	    (name && strlen(name) > ENTRY_NAME_MAX))
		abort();
}

static void check_entry(const char *path, const char *link, uint8_t kind)
{
	_cleanup_(entry_done) struct entry e = { 0 };
	struct entry_said said = {
		.kind = kind % (ENTRY_HARDLINK + 1), .path = path, .link = link, .mode = 07777
	};

	if (entry_read(&said, &e, NULL) < 0)
		return;
	check_path(e.dir, e.name);
	if (e.kind == ENTRY_HARDLINK)
		check_path(e.link_dir, e.link);
	if (e.mode & 06000)
		abort();
}

static void check_documents(const char *text, size_t n)
{
	_cleanup_(oci_manifest_done) struct oci_manifest manifest;
	_cleanup_(oci_index_done) struct oci_index index;

	mo_desc_init(&oci_manifest_desc, &manifest);
	mo_desc_init(&oci_index_desc, &index);
	if (wire_affordable(text, n, NULL) < 0)
		return;
	if (wire_decode(&oci_index_desc, text, n, false, &index, NULL) == 0) {
		(void)oci_choose(&index, NULL, "amd64", NULL);
		oci_index_put(&index, "v1", "x", 1, NULL);
		if (!oci_choose(&index, "v1", "amd64", NULL))
			abort();
	}
	if (wire_decode(&oci_manifest_desc, text, n, false, &manifest, NULL) == 0 &&
	    oci_manifest_check(&manifest, NULL) == 0)
		for (size_t i = 0; i < manifest.n_layers; i++)
			if (!oci_digest_valid(manifest.layers[i].digest) ||
			    manifest.layers[i].size < 0)
				abort();
}

static void check_names(const char *text)
{
	static char *const mirrors[] = { (char *)"docker.io=a.b/c" };
	_cleanup_(reference_done) struct reference r;
	_cleanup_(challenge_done) struct challenge c;
	_cleanup_(source_done) struct source s;

	if (reference_read(text, mirrors, 1, &r, NULL) == 0 &&
	    (strpbrk(r.name, "?#% \r\n") || strpbrk(r.host, "/@?#% \r\n") || r.name[0] == '.' ||
	     strstr(r.name, "/.") || strpbrk(reference_wanted(&r), "/?#% \r\n")))
		abort();
	if (challenge_read(text, &c) && c.bearer && !c.realm)
		abort();
	if (source_read(text, &s, NULL) == 0 && !*s.path)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(mo_freep) char *text = mo_strndup(n ? (const char *)data : "", n);
	size_t half = strlen(text) / 2;
	_cleanup_(mo_freep) char *first = mo_strndup(text, half);

	check_entry(first, text + half, n ? data[n - 1] : 0);
	check_entry(text, first, n ? data[n - 1] : 0);
	check_documents((const char *)data, n);
	check_names(text);
	return 0;
}
