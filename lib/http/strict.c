/* A head must mean one thing only, to us and to every proxy on the way: fields that decide
 * something come once, lengths are numbers, names are names. libmicrohttpd takes the first of two
 * and unescapes %00 to the end of the path. */
#include <string.h>
#include <strings.h>
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "lib/http/strict.h"

static const char *const single[] = {
	"Host",   "Content-Length", "Transfer-Encoding", "Authorization", "Content-Type",
	"Origin", "X-Moe",          "Idempotency-Key",   "Last-Event-ID",
};

struct pass {
	const char *problem;
	unsigned seen;
	bool length, coding;
};

/* Before 0.9.77 libmicrohttpd adds what a folded line continues to the NAME of its header: a folded
 * Content-Length is none any more. It does so elsewhere in memory, or, where the name ends with the
 * last bytes of what was read, in place, over the blanks or over the value. A header as it came has
 * its value right behind its name, and behind the value's line end (NULs by now, one or two) no
 * blank. Later versions take folded lines apart, and keep headers as they like. */
static bool came_folded(const char *name, const char *value)
{
	const char *end = name + strlen(name), *next;
	static int old = -1;

	if (old < 0)
		old = strverscmp(MHD_get_version(), "0.9.77") < 0;
	if (!old || !value)
		return false;
	if (value <= end)
		return true;
	for (const char *p = end; p < value; p++)
		if (p - name >= HTTP_CONNECTION_MEMORY || (*p && *p != ' ' && *p != '\t'))
			return true;
	next = value + strlen(value) + 1;
	next += !*next;
	return *next == ' ' || *next == '\t';
}

/* RFC 9110, 5.6.2; a blank before the colon would be part of the name here. */
static bool is_token(const char *s)
{
	for (const char *p = s; *p; p++)
		if (*p <= ' ' || *p >= 127 || strchr("\"(),/:;<=>?@[\\]{}", *p))
			return false;
	return *s;
}

static bool is_length(const char *s)
{
	int64_t n;

	return strspn(s, "0123456789") == strlen(s) && mo_parse_i64(s, 0, INT64_MAX, &n) == 0;
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name,
				const char *value)
{
	struct pass *l = cls;

	if (came_folded(name, value))
		l->problem = "a header goes on in the next line";
	else if (!is_token(name))
		l->problem = "the name of a header is none: no blank before its colon";
	for (size_t i = 0; i < ELEMENTSOF(single); i++) {
		if (strcasecmp(name, single[i]) != 0)
			continue;
		if (l->seen & 1u << i)
			l->problem = "a header comes twice that may come once (Host, lengths, "
				     "credentials, types, keys)";
		l->seen |= 1u << i;
	}
	if (strcasecmp(name, "Content-Length") == 0) {
		l->length = true;
		if (!is_length(value ? value : ""))
			l->problem = "Content-Length is no number";
	}
	if (strcasecmp(name, "Transfer-Encoding") == 0) {
		l->coding = true;
		if (!value || strcasecmp(value, "chunked") != 0)
			l->problem = "Transfer-Encoding is not chunked: send the body as it is, "
				     "with its length";
	}
	return l->problem ? MHD_NO : MHD_YES;
}

/* MHD cuts the line at its blanks by writing NULs: between path and version there is one. A NUL of
 * the client's would end the path before its end. */
static bool line_is_whole(const struct connection *c, const char *version)
{
	ptrdiff_t gap = version - c->uri_end;

	return gap == 1 || gap <= 0 || gap > HTTP_CONNECTION_MEMORY;
}

const char *strict_head(struct http_request *r, const char *version)
{
	struct pass l = { 0 };

	if (r->connection->bad_escape)
		return "the path or the query string has a % that is no escape, or %00";
	if (r->connection->bad_text)
		return "the path or the query string is no text: not UTF-8, or with control "
		       "characters";
	if (!line_is_whole(r->connection, version))
		return "the request line is not method, path and version with one blank between";
	MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, on_field, &l);
	if (!l.problem && !(l.seen & 1u) && !r->connection->listener->local)
		l.problem = "there is no Host header";
	if (!l.problem && l.length && l.coding)
		l.problem = "Content-Length and Transfer-Encoding are both given: one of them";
	return l.problem;
}

void *strict_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *c = info->socket_context;

	c->bad_escape = c->bad_text = false;
	c->uri_end = uri + strlen(uri);
	return NULL;
}

static int hex(char c)
{
	const char *digits = "0123456789abcdef0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) % 16 : -1;
}

static bool is_text(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 127)
			return false;
	return mo_utf8_valid(s, n);
}

size_t strict_unescape(void *cls, struct MHD_Connection *mhd, char *s)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *c = info->socket_context;
	char *to = s;

	for (const char *p = s; *p; p++) {
		if (*p != '%') {
			*to++ = *p;
			continue;
		}
		int high = hex(p[1]), low = high < 0 ? -1 : hex(p[2]);
		if (low < 0 || (high == 0 && low == 0)) {
			c->bad_escape = true;
			*to++ = *p;
			continue;
		}
		*to++ = (char)(high << 4 | low);
		p += 2;
	}
	*to = 0;
	/* It comes to logs, events and answers, which are text. */
	if (!is_text(s, (size_t)(to - s)))
		c->bad_text = true;
	return (size_t)(to - s);
}
