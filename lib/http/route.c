/* The route table: segments of the path against the patterns. {x} matches one non-empty segment. */
#include <string.h>
#include "lib/http/route.h"

#include "lib/base/assert.h"

bool route_split(struct http_request *r)
{
	r->segments_text = mo_strdup(r->path);
	r->n_segments = 0;
	char *p = r->segments_text;
	if (*p != '/')
		return false;
	p++;
	if (!*p)
		return true;
	while (p) {
		if (r->n_segments == HTTP_SEGMENTS_MAX)
			return false;
		r->segments[r->n_segments++] = p;
		p = strchr(p, '/');
		if (p)
			*p++ = 0;
	}
	return true;
}

/* Length of the pattern's segment at p. */
static size_t segment(const char *p)
{
	return strcspn(p, "/");
}

static bool matches(const char *pattern, const struct http_request *r)
{
	const char *p = pattern + 1;
	size_t i = 0;

	while (*p) {
		size_t n = segment(p);
		if (i == r->n_segments)
			return false;
		const char *have = r->segments[i++];
		if (*p == '{' ? !*have : strncmp(have, p, n) != 0 || have[n])
			return false;
		p += n;
		if (*p)
			p++;
	}
	return i == r->n_segments;
}

const struct http_route *route_find(const struct http_server *s, const struct http_request *r,
				    const struct http_route **ret_path)
{
	mo_assert(r->n_segments <= HTTP_SEGMENTS_MAX);
	for (size_t i = 0; i < s->config.n_routes; i++) {
		const struct http_route *route = &s->config.routes[i];
		if (!matches(route->path, r))
			continue;
		*ret_path = route;
		if (strcmp(route->method, r->method) == 0)
			return route;
	}
	return NULL;
}

void route_allow(const struct http_server *s, const struct http_request *r, struct mo_buf *b)
{
	for (size_t i = 0; i < s->config.n_routes; i++) {
		const struct http_route *route = &s->config.routes[i];
		if (matches(route->path, r))
			mo_buf_printf(b, "%s%s", b->len ? ", " : "", route->method);
	}
}

const char *http_param(const struct http_request *r, const char *name)
{
	const char *p = r->route->path + 1;
	size_t length = strlen(name);

	mo_assert(r->route);
	for (size_t i = 0; *p && i < r->n_segments; i++) {
		size_t n = segment(p);
		if (*p == '{' && n == length + 2 && strncmp(p + 1, name, length) == 0)
			return r->segments[i];
		p += n;
		if (*p)
			p++;
	}
	return NULL;
}
