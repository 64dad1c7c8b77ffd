/* See reference.h. */
#include "lib/model/reference.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/utf8.h"

#define DOCKER "docker.io"
#define NAME_MAX_BYTES 255
#define TAG_MAX_BYTES 128

bool oci_digest_valid(const char *s)
{
	static const char digits[] = "0123456789abcdef";

	return s && strlen(s) == OCI_DIGEST_LENGTH && mo_starts_with(s, "sha256:") &&
	       strspn(s + 7, digits) == 64;
}

void reference_done(struct reference *r)
{
	free(r->host);
	free(r->name);
	free(r->tag);
	free(r->digest);
	*r = (struct reference){ 0 };
}

static bool host_valid(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");

	if (n == 0 || *s == '-')
		return false;
	return s[n] == 0 ||
	       (s[n] == ':' && s[n + 1] && strspn(s + n + 1, "0123456789") == strlen(s + n + 1));
}

/* Parts of small letters, digits and . _ -, between slashes; none begins with one of these. */
static bool name_valid(const char *s)
{
	if (!*s || strlen(s) > NAME_MAX_BYTES)
		return false;
	for (const char *at = s;; at++) {
		size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789._-");

		if (n == 0 || !isalnum((unsigned char)*at))
			return false;
		at += n;
		if (*at != '/')
			return *at == 0;
	}
}

static bool tag_valid(const char *s)
{
	return *s && *s != '.' && *s != '-' && strlen(s) <= TAG_MAX_BYTES &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       strlen(s);
}

/* HOST/NAME of what has been written: a first part that can be no host is of a name. */
static char *whole_name(const char *s)
{
	size_t n = strcspn(s, "/");
	_cleanup_(mo_freep) char *first = mo_strndup(s, n);

	if (s[n] == '/' && (strpbrk(first, ".:") || mo_streq(first, "localhost"))) {
		/* its own images have a library of their own */
		bool bare = mo_streq(first, DOCKER) && !strchr(s + n + 1, '/');

		return bare ? mo_printf(DOCKER "/library/%s", s + n + 1) : mo_strdup(s);
	}
	return mo_printf(DOCKER "/%s%s", s[n] == '/' ? "" : "library/", s);
}

static char *mirrored(char *name, char *const *mirrors, size_t n_mirrors)
{
	for (size_t i = 0; i < n_mirrors; i++) {
		size_t n = strcspn(mirrors[i], "=");
		char *there;

		if (n == 0 || mirrors[i][n] == 0 || strncmp(name, mirrors[i], n) != 0 ||
		    (name[n] != '/' && name[n] != 0))
			continue;
		there = mo_printf("%s%s", mirrors[i] + n + 1, name + n);
		free(name);
		return there;
	}
	return name;
}

int reference_read(const char *text, char *const *mirrors, size_t n_mirrors, struct reference *ret,
		   struct mo_error *err)
{
	const char *at = strchr(text, '@');
	_cleanup_(mo_freep) char *named = mo_strndup(text, at ? (size_t)(at - text) : strlen(text));
	char *slash = strrchr(named, '/'), *colon = strchr(slash ? slash : named, ':');

	*ret = (struct reference){ .digest = at ? mo_strdup(at + 1) : NULL };
	if (colon) {
		*colon = 0;
		if (!at)
			ret->tag = mo_strdup(colon + 1);
	} else if (!at) {
		ret->tag = mo_strdup("latest");
	}
	_cleanup_(mo_freep) char *whole = mirrored(whole_name(named), mirrors, n_mirrors);
	size_t n = strcspn(whole, "/");

	ret->host = mo_strndup(whole, n);
	ret->name = mo_strdup(whole[n] ? whole + n + 1 : "");
	if (mo_streq(ret->host, DOCKER))
		mo_str_set(&ret->host, "registry-1." DOCKER);
	if (host_valid(ret->host) && name_valid(ret->name) && (!ret->tag || tag_valid(ret->tag)) &&
	    (!ret->digest || oci_digest_valid(ret->digest)))
		return 0;
	return mo_error_set(err, IMAGE_REFUSED,
			    "%.*s is no name of an image; write HOST/NAME:TAG or "
			    "HOST/NAME@sha256:DIGEST",
			    mo_utf8_shown(text, 200), text);
}

bool reference_is_loopback(const struct reference *r)
{
	size_t n = strcspn(r->host, ":");

	return (n == strlen("localhost") && strncmp(r->host, "localhost", n) == 0) ||
	       (mo_starts_with(r->host, "127.") && strspn(r->host, "0123456789.") == n);
}

const char *reference_wanted(const struct reference *r)
{
	return r->digest ? r->digest : r->tag;
}
