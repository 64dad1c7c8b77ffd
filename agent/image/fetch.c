/* See fetch.h. */
#include "agent/image/fetch.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "agent/image/blob.h"
#include "agent/image/download.h"
#include "agent/image/layout.h"
#include "agent/image/names.h"
#include "agent/image/place.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/model/image.h"
#include "lib/wire/encode.h"

/* indexes that lie in indexes */
#define DEEPEST 4
#define LAYOUT_VERSION "{\"imageLayoutVersion\": \"1.0.0\"}\n"
#define ASK_TRIES 4
#define ASK_REST_MS 500

struct job {
	struct registry registry;
	const char *dir, *architecture;
	int layout; /* dir, locked */
	/* of the manifest that is meant */
	struct mo_buf text;
	char *digest;
	struct oci_manifest manifest;
};

static char *digest_of(const struct mo_buf *b)
{
	unsigned char sum[32];
	char hex[2 * sizeof(sum) + 1];

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, b->data ? b->data : "", b->len, sum) != 0)
		return mo_strdup("");
	mo_hex(sum, sizeof(sum), hex);
	return mo_printf("sha256:%s", hex);
}

/* An index or a manifest, into j->text and j->digest. */
static int ask_document(struct job *j, const char *wanted, struct mo_error *err)
{
	int r = -EAGAIN;

	for (int i = 0; i < ASK_TRIES && r == -EAGAIN; i++) {
		if (i > 0)
			mo_clock_rest_ms(ASK_REST_MS << i);
		mo_error_done(err);
		r = registry_manifest(&j->registry, wanted, &j->text, err);
	}
	if (r < 0)
		return r;
	free(j->digest);
	j->digest = digest_of(&j->text);
	if (strchr(wanted, ':') && !mo_streq(j->digest, wanted))
		return mo_error_set(err, -EIO, "%s answers %s with bytes of the digest %s",
				    j->registry.of->host, wanted, j->digest);
	return 0;
}

/* From what was asked for to the manifest of this architecture. */
static int find_manifest(struct job *j, struct mo_error *err)
{
	_cleanup_(mo_freep) char *wanted = mo_strdup(reference_wanted(j->registry.of));

	for (int depth = 0; depth <= DEEPEST; depth++) {
		_cleanup_(oci_index_done) struct oci_index index;
		const struct oci_descriptor *d;
		int r = ask_document(j, wanted, err);

		mo_desc_init(&oci_index_desc, &index);
		if (r == 0)
			r = document_read(j->text.data ? j->text.data : "", j->text.len,
					  &oci_index_desc, &index, err);
		if (r < 0)
			return r;
		if (index.n_manifests == 0) {
			r = document_read(j->text.data, j->text.len, &oci_manifest_desc,
					  &j->manifest, err);
			return r < 0 ? r : oci_manifest_check(&j->manifest, err);
		}
		d = oci_choose(&index, NULL, j->architecture, err);
		if (!d)
			return IMAGE_REFUSED;
		if (!oci_digest_valid(d->digest))
			return mo_error_set(err, IMAGE_REFUSED,
					    "its index names an image without a sha256 digest");
		mo_str_set(&wanted, d->digest);
	}
	return mo_error_set(err, IMAGE_REFUSED, "its indexes are nested too deep");
}

static int open_layout(struct job *j, struct mo_error *err)
{
	_cleanup_(mo_freep) char *blobs = mo_path(j->dir, "blobs/sha256");
	_cleanup_(mo_freep) char *version = mo_path(j->dir, "oci-layout");
	int r = mo_mkdir_p(blobs, 0755, false);

	if (r >= 0) {
		j->layout = mo_open_at(AT_FDCWD, j->dir, O_RDONLY | O_DIRECTORY, 0);
		r = j->layout < 0 ? j->layout : mo_flock(j->layout);
		r = mo_flock_lacks(r) ? 0 : r;
	}
	if (r == -EWOULDBLOCK)
		return mo_error_set(err, r, "another process fetches an image to %s now", j->dir);
	if (r >= 0)
		r = mo_write_file(version, LAYOUT_VERSION, strlen(LAYOUT_VERSION), 0644, false);
	return r < 0 ? mo_error_set(err, r, "%s cannot be made: %s", j->dir, strerror(-r)) : 0;
}

/* Before 30 GB have come. */
static int check_room(const struct job *j, int64_t bytes, struct mo_error *err)
{
	struct statvfs fs;
	int64_t room = mo_space(j->dir, &fs) < 0
			       ? INT64_MAX
			       : mo_times((int64_t)fs.f_bavail, (int64_t)fs.f_frsize);

	if (room >= bytes)
		return 0;
	return mo_error_set(err, -ENOSPC, "%s has room for %lld bytes, the image has %lld", j->dir,
			    (long long)room, (long long)bytes);
}

/* It runs here, or nothing else of it is fetched. */
static int check_config(const struct job *j, struct mo_error *err)
{
	_cleanup_(oci_config_done) struct oci_config c;
	int r;

	mo_desc_init(&oci_config_desc, &c);
	r = layout_document(j->layout, j->manifest.config, "its configuration", &oci_config_desc,
			    &c, err);
	return r < 0 ? r : oci_config_check(&c, j->architecture, err);
}

static int download_all(struct job *j, struct mo_error *err)
{
	struct progress p = { .all = j->manifest.config->size };
	size_t n = j->manifest.n_layers;

	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(p.all, j->manifest.layers[i].size, &p.all))
			return mo_error_set(err, IMAGE_REFUSED, "its sizes are no sizes");
	int r = download(&j->registry, j->layout, j->manifest.config, &p, err);

	if (r == 0)
		r = check_config(j, err);
	if (r == 0)
		r = check_room(j, p.all, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct mo_error why = { 0 };

		r = download(&j->registry, j->layout, &j->manifest.layers[i], &p, &why);
		if (r < 0)
			mo_error_set(err, r, "layer %zu of %zu: %s", i + 1, n,
				     mo_error_text(&why, r));
		mo_error_done(&why);
	}
	return r;
}

static int put_file(const struct job *j, const char *name, const char *data, size_t n,
		    struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(j->dir, "%s", name);
	int r = mo_write_file(path, data, n, 0644, true);

	return r < 0 ? mo_error_set(err, r, "%s cannot be written: %s", path, strerror(-r)) : 0;
}

/* All blobs are there. */
static int name_image(const struct job *j, struct mo_error *err)
{
	_cleanup_(mo_freep) char *name = layout_blob_name(j->digest),
				 *path = mo_path(j->dir, "index.json");
	_cleanup_(oci_index_done) struct oci_index index;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = put_file(j, name, j->text.data, j->text.len, err);

	mo_desc_init(&oci_index_desc, &index);
	if (r == 0 && mo_access(path, F_OK) == 0)
		r = layout_index(j->layout, &index, err);
	if (r < 0)
		return r;
	oci_index_put(&index, j->registry.of->tag, j->digest, (int64_t)j->text.len,
		      j->manifest.media_type);
	wire_encode(&oci_index_desc, &index, &b);
	mo_buf_str(&b, "\n");
	return put_file(j, "index.json", b.data, b.len, err);
}

static bool is_cached(const struct fetch_wish *wish, const char *digest)
{
	_cleanup_(mo_freep) char *name = image_dir_name(digest),
				 *path = mo_path(wish->cache, "%s", name);
	bool has = place_has(path, digest);

	if (has)
		names_add(path, wish->name);
	return has;
}

static int fetch_missing(struct job *j, struct mo_error *err)
{
	int r = open_layout(j, err);

	if (r == 0)
		r = download_all(j, err);
	return r < 0 ? r : name_image(j, err);
}

int fetch(const struct reference *from, const char *dir, const char *architecture,
	  const struct fetch_wish *wish, struct mo_error *err)
{
	struct job j = { .dir = dir, .architecture = architecture, .layout = -1 };

	mo_desc_init(&oci_manifest_desc, &j.manifest);
	int r = registry_init(&j.registry, from, wish->auth_file, wish->silence_s, err);

	if (r == 0)
		r = find_manifest(&j, err);
	if (r == 0 && wish->tells) {
		printf("image %s\n", j.digest);
		fflush(stdout);
	}
	if (r == 0)
		r = wish->cache && is_cached(wish, j.digest) ? 1 : fetch_missing(&j, err);
	if (r >= 0)
		printf("%s\n", j.digest);
	registry_done(&j.registry);
	oci_manifest_done(&j.manifest);
	mo_buf_done(&j.text);
	mo_close(j.layout);
	free(j.digest);
	return r;
}
