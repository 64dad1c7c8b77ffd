/* See pull.h. What speaks to a network and what reads archives are processes of their own: each is
 * forked here, does its part, and is gone. */
#include "agent/image/pull.h"

#include <gnutls/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/core/image/oci.h"
#include "agent/image/apart.h"
#include "agent/image/fetch.h"
#include "agent/image/names.h"
#include "agent/image/place.h"
#include "agent/image/unpack.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/model/image.h"

struct pull {
	const struct args *args;
	const char *cache, *architecture;
	struct reference from; /* of a registry */
	char *layout;          /* where it is fetched to; NULL: nothing is fetched */
	struct source source;  /* what is unpacked */
};

static int do_fetch(const void *arg, struct mo_error *err)
{
	const struct pull *p = arg;
	const struct fetch_wish wish = { .auth_file = p->args->auth_file,
					 .silence_s = p->args->silence_s,
					 .cache = p->cache,
					 .name = p->args->source,
					 .tells = true };

	return fetch(&p->from, p->layout, p->architecture, &wish, err);
}

static int do_unpack(const void *arg, struct mo_error *err)
{
	const struct pull *p = arg;
	const struct unpack_wish wish = { .by_digest = true,
					  .bytes_max = p->args->bytes_max,
					  .tells = !p->layout,
					  .name = p->args->source };

	return unpack(&p->source, p->architecture, p->cache, &wish, err);
}

/* One for each name and digest, so that a killed one is gone on with; its end lets what looks for
 * leftovers find it. */
static char *layout_path(const struct args *a, const char *cache)
{
	_cleanup_(mo_freep) char *text = mo_printf("%s %s", a->source, a->digest ? a->digest : "");
	unsigned char sum[32] = { 0 };
	char hex[2 * sizeof(sum) + 1];

	gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), sum);
	mo_hex(sum, sizeof(sum), hex);
	return mo_path(cache, "fetch-%.24s" PLACE_PARTIAL, hex);
}

static int read_registry(struct pull *p, struct mo_error *err)
{
	const struct args *a = p->args;
	const char *name = mo_starts_with(a->source, IMAGE_REGISTRY)
				   ? a->source + strlen(IMAGE_REGISTRY)
				   : a->source;
	int r = reference_read(name, a->mirrors, a->n_mirrors, &p->from, err);

	if (r < 0)
		return r;
	if (a->digest)
		mo_str_set(&p->from.digest, a->digest);
	p->layout = layout_path(a, p->cache);
	p->source = (struct source){ .kind = SOURCE_LAYOUT,
				     .path = mo_strdup(p->layout),
				     .tag = mo_strdup(p->from.tag) };
	return 0;
}

static int read_source(struct pull *p, struct mo_error *err)
{
	switch (image_source(p->args->source)) {
	case IMAGE_OF_REGISTRY: return read_registry(p, err);
	case IMAGE_OF_LAYOUT:
	case IMAGE_OF_ARCHIVE: break;
	default: return mo_error_set(err, IMAGE_REFUSED, "images of this kind are not brought");
	}
	int r = source_read(p->args->source, &p->source, err);

	if (r == 0 && p->args->digest)
		mo_str_set(&p->source.digest, p->args->digest);
	return r;
}

static int bring(struct pull *p, struct mo_error *err)
{
	int r = read_source(p, err);

	if (r == 0 && p->layout)
		r = apart(p->args->source, do_fetch, p, err);
	/* what is unpacked from it must not be pruned meanwhile */
	_cleanup_(mo_closep) int layout = r == 0 && p->layout ? place_lock(p->layout) : -1;

	if (r == 0 && p->layout && layout < 0)
		r = mo_error_set(err, layout, "%s, which was fetched, is another's: %s", p->layout,
				 strerror(-layout));
	if (r == 0)
		r = apart(p->args->source, do_unpack, p, err);
	if (p->layout && (r == 0 || r == APART_MORE))
		(void)mo_rm_rf(p->layout);
	return r == APART_MORE ? 0 : r;
}

/* What is asked for may be a digest by itself. */
static const char *wanted_digest(const struct args *a)
{
	const char *at = strrchr(a->source, '@');

	return a->digest ? a->digest : at && oci_digest_valid(at + 1) ? at + 1 : NULL;
}

int pull(const struct args *a, const char *cache, const char *architecture, struct mo_error *err)
{
	struct pull p = { .args = a, .cache = cache, .architecture = architecture };
	const char *digest = wanted_digest(a);
	_cleanup_(mo_freep) char *name = digest ? image_dir_name(digest) : NULL;
	_cleanup_(mo_freep) char *path = name ? mo_path(cache, "%s", name) : NULL;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for it then */
	if (path && place_has(path, digest)) {
		names_add(path, a->source);
		printf("image %s\n%s\n", digest, digest);
		return 0;
	}
	if (a->never)
		return mo_error_set(err, IMAGE_REFUSED, "it is not in %s, and pull: never", cache);
	int r = bring(&p, err);

	reference_done(&p.from);
	source_done(&p.source);
	free(p.layout);
	return r;
}
