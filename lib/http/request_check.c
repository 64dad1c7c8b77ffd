/* What is checked of a request's head, in the order that server.h names, before its body is
 * taken. */
#include "lib/http/request_check.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <utlist.h>

#include "lib/http/door.h"
#include "lib/http/guard.h"
#include "lib/http/reply.h"
#include "lib/http/route.h"
#include "lib/http/strict.h"
#include "lib/wire/encode.h"

const char *request_header(const struct http_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

/* A name that does not fit is refused: cut, it would be another's. NULL is "". */
static bool keep_name(char *to, size_t size, const char *name)
{
	size_t n = name ? strnlen(name, size) : 0;

	if (n >= size)
		return false;
	memcpy(to, name ? name : "", n);
	to[n] = 0;
	return true;
}

static bool set_caller(struct http_request *r, const struct http_caller *c)
{
	if (!keep_name(r->user, sizeof(r->user), c->user) ||
	    !keep_name(r->token_id, sizeof(r->token_id), c->token_id))
		return false;
	r->caller = *c;
	r->caller.user = r->user;
	r->caller.token_id = c->token_id ? r->token_id : NULL;
	return true;
}

/* The peer of a UNIX connection is asked once per connection. */
static bool peer_caller(struct http_request *r)
{
	struct connection *c = r->connection;
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (!c->peer_known) {
		if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
			return false;
		r->server->config.peer(r->server->config.arg, cred.uid, &c->peer);
		if (!keep_name(c->peer_user, sizeof(c->peer_user), c->peer.user))
			c->peer.role = ROLE_NONE;
		c->peer.user = c->peer_user;
		c->peer.local = true;
		c->peer.token_id = NULL;
		c->peer_known = true;
	}
	return set_caller(r, &c->peer) && r->caller.role != ROLE_NONE;
}

/* A given bearer token decides alone (also on the UNIX socket: agents of a local cluster); then the
 * peer; then the cookie. */
static bool find_caller(struct http_request *r)
{
	const struct http_server_config *config = &r->server->config;
	const char *auth = request_header(r, "Authorization");
	struct http_caller c = { 0 };

	if (auth) {
		if (strncasecmp(auth, "Bearer ", 7) != 0 ||
		    !config->authenticate(config->arg, auth + 7, false, &c))
			return false;
		c.local = r->connection->listener->local;
		return set_caller(r, &c);
	}
	if (r->connection->listener->local)
		return peer_caller(r);
	const char *cookie = MHD_lookup_connection_value(r->mhd, MHD_COOKIE_KIND, "moe_session");
	if (!cookie || !config->authenticate(config->arg, cookie, true, &c))
		return false;
	c.by_cookie = true;
	return set_caller(r, &c);
}

/* Defence against DNS rebinding: a page of another name must not reach us through the victim's
 * browser. */
static bool host_allowed(const struct http_server *s, const char *host)
{
	char name[256];
	struct in6_addr any;
	size_t n;

	if (!host)
		return false;
	if (*host == '[') {
		host++;
		n = strcspn(host, "]");
	} else {
		n = strcspn(host, ":");
	}
	if (n == 0 || n >= sizeof(name))
		return false;
	memcpy(name, host, n);
	name[n] = 0;
	if (inet_pton(AF_INET, name, &any) == 1 || inet_pton(AF_INET6, name, &any) == 1)
		return true;
	if (strcasecmp(name, "localhost") == 0 ||
	    (s->host_name && strcasecmp(name, s->host_name) == 0))
		return true;
	for (size_t i = 0; s->config.host_names && s->config.host_names[i]; i++)
		if (strcasecmp(name, s->config.host_names[i]) == 0)
			return true;
	return false;
}

/* An Origin is given by browsers on unsafe methods: it must be our own. */
static bool origin_allowed(const struct http_request *r)
{
	const char *origin = request_header(r, "Origin"), *host = request_header(r, "Host");

	if (!origin)
		return true;
	const char *p = strstr(origin, "://");
	return p && host && strcasecmp(p + 3, host) == 0;
}

static bool type_is(const char *have, const char *want)
{
	size_t n = strlen(want);

	return strncasecmp(have, want, n) == 0 && (!have[n] || have[n] == ';' || have[n] == ' ');
}

static bool type_allowed(const struct http_request *r)
{
	static const char *const yaml[] = { "application/yaml", "application/x-yaml", "text/yaml",
					    "text/x-yaml" };
	const char *type = request_header(r, "Content-Type");

	if (!type)
		return false;
	if (type_is(type, "application/json"))
		return true;
	for (size_t i = 0; r->route->yaml && i < ELEMENTSOF(yaml); i++)
		if (type_is(type, yaml[i]))
			return true;
	return false;
}

static void refuse_method(struct http_request *r)
{
	_cleanup_(mo_buf_done) struct mo_buf methods = { 0 }, body = { 0 };

	route_allow(r->server, r, &methods);
	_cleanup_(mo_freep) char *allow = mo_printf("Allow: %s", methods.data);
	_cleanup_(mo_freep) char *detail =
		mo_printf("method %s is not allowed here: this path answers %s", r->method,
			  methods.data);
	wire_problem(405, detail, &body);
	http_reply(r, 405, "application/problem+json", body.data, body.len,
		   (const char *const[]){ allow, NULL });
}

/* Nobody, or somebody with a wrong credential: of the latter each source has few tries. */
static void refuse_caller(struct http_request *r)
{
	bool given = request_header(r, "Authorization") ||
		     MHD_lookup_connection_value(r->mhd, MHD_COOKIE_KIND, "moe_session");

	if (given && guard_wrong(r))
		http_problem(r, 429,
			     "too many wrong credentials from here: try again with the right one "
			     "(moectl token create makes one)");
	else
		reply_refuse(r, "no valid credential: send a bearer token (made by moectl token "
				"create)");
}

/* False: he has too many connections. */
static bool accept_caller(struct http_request *r)
{
	_cleanup_(mo_freep) char *why = guard_accepted(r);

	if (why)
		http_problem(r, 429, "%s", why);
	return !why;
}

static bool role_allows(enum role have, enum role need)
{
	if (need == ROLE_AGENT || have == ROLE_AGENT)
		return need == have;
	return have >= need;
}

bool request_check_head(struct http_request *r, const char *version, bool has_body, uint64_t length)
{
	const struct http_route *path = NULL;
	const char *problem = strict_head(r, version);

	if (problem)
		return http_problem(r, 400, "%s", problem), false;
	if (!r->connection->listener->local && !host_allowed(r->server, request_header(r, "Host")))
		return http_problem(r, 421,
				    "the Host header names another machine: use this controller's "
				    "address, or add the name to host_names"),
		       false;
	r->route = route_split(r) ? route_find(r->server, r, &path) : NULL;
	bool open = path && path->role == ROLE_NONE;
	if (!open && !find_caller(r))
		return refuse_caller(r), false;
	if (!open && !accept_caller(r))
		return false;
	if (!path)
		return http_problem(r, 404, "there is nothing at this path"), false;
	if (!r->route)
		return refuse_method(r), false;
	if (r->route->role != ROLE_NONE && !role_allows(r->caller.role, r->route->role))
		return http_problem(r, 403, "role %s may not do this: it needs role %s",
				    role_names[r->caller.role], role_names[r->route->role]),
		       false;
	if (strcmp(r->method, "GET") != 0) {
		if (!origin_allowed(r))
			return http_problem(r, 403,
					    "the request comes from a page of another site"),
			       false;
		if (r->caller.by_cookie && !mo_streq(request_header(r, "X-Moe"), "1"))
			return http_problem(r, 403, "a change by cookie needs the header X-Moe: 1"),
			       false;
	}
	if (has_body && !type_allowed(r))
		return http_problem(r, 415, "the body must be %s",
				    r->route->yaml ? "application/json or application/yaml"
						   : "application/json"),
		       false;
	if (length > r->route->max_body)
		return http_problem(r, 413, "the body is larger than the %zu bytes allowed here",
				    r->route->max_body),
		       false;
	if (!open && r->server->config.admit_head &&
	    !r->server->config.admit_head(r->server->config.arg, r))
		return false;
	return door_open(r);
}
