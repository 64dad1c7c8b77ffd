/* What of an answer to GET need not travel. Each has a tag of its bytes (a weak one: packed and
 * plain are the same document); who asks again and names it (If-None-Match) gets 304 without a
 * body. Who takes gzip gets texts packed, at the fastest level: 100 MB/s of one core, so that
 * PACK_MAX keeps the loop for 5 ms; what is larger goes as it is. What anybody may ask for is
 * packed once, as long as it is the same: strangers ask as often as they like. Streams are not
 * packed: MHD gives no place to flush them at. Answers to anything but GET are neither: they may
 * hold secrets beside what the client wrote, and the length of a packed text tells of both. */
#include "lib/http/represent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/assert.h"
#include "lib/base/crc32c.h"

#define PACK_MIN 512 /* less fits in a packet anyway */
#define PACK_MAX (512 * 1024)
#define GZIP_WINDOW (15 + 16) /* 32 kB, with the head of gzip */

static const char *header(const struct http_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

static bool is_get(const struct http_request *r)
{
	return r->method && strcmp(r->method, "GET") == 0;
}

bool represent_tag(const struct http_request *r, const void *body, size_t n,
		   char ret[REPRESENT_TAG_MAX])
{
	const char *known;

	*ret = 0;
	if (!is_get(r) || n == 0)
		return false;
	snprintf(ret, REPRESENT_TAG_MAX, "W/\"%08x-%zx\"", mo_crc32c(0, body, n), n);
	known = header(r, "If-None-Match");
	return known && (strcmp(known, "*") == 0 || strstr(known, ret + 2));
}

static bool is_text(const char *type)
{
	return type && (mo_starts_with(type, "text/") || mo_starts_with(type, "application/json") ||
			mo_starts_with(type, "image/svg"));
}

/* "gzip" stands there, and not with q=0. */
static bool takes_gzip(const char *accepted)
{
	const char *at = accepted ? strstr(accepted, "gzip") : NULL;
	size_t blank;

	if (!at || (at > accepted && !strchr(", \t", at[-1])))
		return false;
	at += strlen("gzip");
	blank = strspn(at, " \t");
	if (at[blank] != ';')
		return at[blank] == ',' || !at[blank];
	at += blank + 1;
	at += strspn(at, " \t");
	return strncmp(at, "q=0", 3) != 0 || strspn(at + 3, ".0") != strcspn(at + 3, ", \t");
}

static bool pack(const void *body, size_t n, struct mo_buf *ret)
{
	z_stream z = { 0 };
	int done;

	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	size_t room = deflateBound(&z, n);
	_cleanup_(mo_freep) unsigned char *packed = mo_alloc(room);
	z.next_in = (unsigned char *)body;
	z.avail_in = (unsigned)n;
	z.next_out = packed;
	z.avail_out = (unsigned)room;
	done = deflate(&z, Z_FINISH);
	mo_assert(done == Z_STREAM_END); /* there is room for the worst case */
	size_t size = room - z.avail_out;
	deflateEnd(&z);
	if (done != Z_STREAM_END || size >= n)
		return false;
	mo_buf_add(ret, packed, size);
	return true;
}

bool represent_packed(const struct http_request *r, const char *content_type, const char *tag,
		      const void *body, size_t n, struct mo_buf *ret)
{
	const struct http_server *s = r->server;

	if (n < PACK_MIN || n > PACK_MAX || !is_get(r) || !is_text(content_type) ||
	    !takes_gzip(header(r, "Accept-Encoding")))
		return false;
	if (!r->route || r->route->role != ROLE_NONE)
		return pack(body, n, ret);

	struct packed *k = &s->packed[r->route - s->config.routes];

	if (strcmp(k->of, tag) != 0) {
		mo_buf_reset(&k->bytes);
		*k->of = 0;
		if (!pack(body, n, &k->bytes))
			return false;
		snprintf(k->of, sizeof(k->of), "%s", tag);
	}
	mo_buf_add(ret, k->bytes.data, k->bytes.len);
	return true;
}

void represent_new(struct http_server *s)
{
	s->packed = mo_alloc_array(s->config.n_routes, sizeof(*s->packed));
}

void represent_done(struct http_server *s)
{
	for (size_t i = 0; s->packed && i < s->config.n_routes; i++)
		mo_buf_done(&s->packed[i].bytes);
	free(s->packed);
}
