/* See unpack.h. */
#include "agent/image/unpack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/image/cache.h"
#include "agent/core/stepd/image_config.h"
#include "agent/image/layer.h"
#include "agent/image/place.h"
#include "lib/base/fd.h"
#include "lib/model/image.h"
#include "lib/wire/encode.h"

static int write_text(const struct place *p, const char *name, const char *text, size_t n,
		      struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(p->partial, "%s", name);
	int r = mo_write_file(path, text, n, 0644, false);

	return r < 0 ? mo_error_set(err, r, "%s cannot be written: %s", path, strerror(-r)) : 0;
}

/* config.json of a bundle, as agent/namespace reads it, if it will. */
static int write_config(const struct place *p, const struct oci_config *c, struct mo_error *err)
{
	_cleanup_(image_bundle_done) struct image_bundle bundle;
	_cleanup_(image_config_done) struct image_config seen;
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_desc_init(&image_bundle_desc, &bundle);
	mo_desc_init(&image_config_desc, &seen);
	bundle.process = mo_desc_new(image_bundle_desc.fields[0].sub);
	for (size_t i = 0; c->process && i < c->process->n_env; i++)
		if (c->process->env[i])
			mo_strs_add(&bundle.process->env, &bundle.process->n_env,
				    c->process->env[i]);
	if (c->process && c->process->workdir && *c->process->workdir)
		bundle.process->cwd = mo_strdup(c->process->workdir);
	if (image_config_bundle(&bundle, &seen, &why) < 0)
		return mo_error_set(err, IMAGE_REFUSED, "its configuration: %s",
				    mo_error_text(&why, -EINVAL));
	wire_encode(&image_bundle_desc, &bundle, &b);
	mo_buf_str(&b, "\n");
	if (b.len > IMAGE_CONFIG_BYTES_MAX)
		return mo_error_set(err, IMAGE_REFUSED,
				    "its configuration has more than %d bytes of environment",
				    IMAGE_CONFIG_BYTES_MAX);
	return write_text(p, "config.json", b.data, b.len, err);
}

static int unpack_layer(const struct parts *parts, size_t i, struct tree *t, struct entry_sum *sum,
			struct mo_error *err)
{
	_cleanup_(blob_close) struct blob b = { .fd = -1, .of = -1 };
	struct mo_error why = { 0 };
	int r = parts_open(parts, i, &b, &why);

	if (r == 0)
		r = layer_unpack(&b, parts->layers[i].unpacked, t, sum, &why);
	if (r == 0)
		r = blob_end(&b, parts->layers[i].digest, NULL, &why);
	if (r < 0)
		mo_error_set(err, r, "layer %zu of %zu: %s", i + 1, parts->n_layers,
			     mo_error_text(&why, r));
	if (r < 0 && why.hint)
		mo_error_hint(err, "%s", why.hint);
	mo_error_done(&why);
	return r;
}

/* Of all layers, as the source says; MO_NONE: it does not. */
static int64_t packed_bytes(const struct parts *parts)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < parts->n_layers; i++)
		if (parts->layers[i].bytes == MO_NONE ||
		    __builtin_add_overflow(bytes, parts->layers[i].bytes, &bytes))
			return MO_NONE;
	return bytes;
}

static int unpack_layers(const struct parts *parts, const struct place *p, int64_t bytes_max,
			 struct mo_error *err)
{
	struct entry_sum sum = { .bytes_max = bytes_max };
	_cleanup_(mo_closep) int root = -1;
	int r = mkdirat(p->dir, "rootfs", 0755) < 0 ? -errno : 0;

	if (r == 0) {
		root = mo_open_at(p->dir, "rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		r = MO_MIN(root, 0);
	}
	if (r < 0)
		return mo_error_set(err, r, "%s/rootfs cannot be made: %s", p->partial,
				    strerror(-r));
	struct tree t = { .root = root };
	int64_t done = 0, all = packed_bytes(parts);

	for (size_t i = 0; r == 0 && i < parts->n_layers; i++) {
		r = unpack_layer(parts, i, &t, &sum, err);
		if (r == 0) {
			printf("layer %zu of %zu: %lld bytes in %lld files so far\n", i + 1,
			       parts->n_layers, (long long)sum.bytes, (long long)sum.entries);
			done += parts->layers[i].bytes;
			if (all != MO_NONE)
				printf("unpacked %lld of %lld bytes\n", (long long)done,
				       (long long)all);
			fflush(stdout);
		}
	}
	return r;
}

static int unpack_parts(const struct parts *parts, const char *dest, int64_t bytes_max,
			struct mo_error *err)
{
	_cleanup_(mo_freep) char *digest = mo_printf("%s\n", parts->digest);
	struct place p;
	int r = place_begin(&p, dest, parts->digest, err);

	if (r == 0) {
		r = unpack_layers(parts, &p, bytes_max, err);
		if (r == 0)
			r = write_config(&p, &parts->config, err);
		if (r == 0)
			r = write_text(&p, "digest", digest, strlen(digest), err);
		if (r == 0)
			r = place_finish(&p, err);
	}
	place_end(&p);
	if (r >= 0)
		fputs(digest, stdout);
	return MO_MIN(r, 0);
}

int unpack(const struct source *from, const char *architecture, const char *dest,
	   const struct unpack_wish *wish, struct mo_error *err)
{
	struct parts parts;
	int r = parts_read(from, architecture, &parts, err);

	if (r == 0) {
		_cleanup_(mo_freep) char *name = image_dir_name(parts.digest);
		_cleanup_(mo_freep) char *path =
			wish->by_digest ? mo_path(dest, "%s", name) : mo_strdup(dest);

		if (wish->tells) {
			printf("image %s\n", parts.digest);
			fflush(stdout);
		}
		r = unpack_parts(&parts, path, wish->bytes_max, err);
	}
	parts_done(&parts);
	return r;
}
