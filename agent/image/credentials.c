/* See credentials.h. */
#include "agent/image/credentials.h"

#include <errno.h>
#include <string.h>

#include "agent/core/image/oci.h"
#include "lib/base/secret.h"
#include "lib/wire/parse.h"

#define BYTES_MAX (256 * 1024)
#define DOCKER "registry-1.docker.io"
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

/* Entries are hosts, or what old versions of Docker called them. */
static const char *entry_of(struct json_object *auths, const char *host)
{
	static const char *const docker[] = { "https://index.docker.io/v1/", "docker.io",
					      "index.docker.io" };
	_cleanup_(mo_freep) char *url = mo_printf("https://%s", host);
	struct json_object *entry = NULL, *auth = NULL;
	bool found = json_object_object_get_ex(auths, host, &entry) ||
		     json_object_object_get_ex(auths, url, &entry);

	for (size_t i = 0; !found && mo_streq(host, DOCKER) && i < ELEMENTSOF(docker); i++)
		found = json_object_object_get_ex(auths, docker[i], &entry);
	if (!found || !json_object_is_type(entry, json_type_object) ||
	    !json_object_object_get_ex(entry, "auth", &auth) ||
	    !json_object_is_type(auth, json_type_string))
		return NULL;
	return json_object_get_string(auth);
}

int credentials_read(const char *path, const char *host, char **ret, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct json_object *json = NULL, *auths = NULL;
	const char *auth = NULL;
	int r = mo_secret_read_file(path, BYTES_MAX, &b, &why);

	if (r < 0)
		return mo_error_set(err, IMAGE_REFUSED, "%s", mo_error_text(&why, r));
	/* what is wrong with it may quote it */
	if (wire_parse(b.data ? b.data : "", b.len, &json, NULL) < 0)
		mo_error_set(err, IMAGE_REFUSED, "%s is no JSON", path);
	else if (json_object_is_type(json, json_type_object) &&
		 json_object_object_get_ex(json, "auths", &auths) &&
		 json_object_is_type(auths, json_type_object))
		auth = entry_of(auths, host);
	if (auth && *auth && strspn(auth, BASE64) == strlen(auth))
		*ret = mo_strdup(auth);
	else
		mo_error_set(err, IMAGE_REFUSED, "%s has no auths.\"%s\".auth", path, host);
	json_object_put(json);
	if (b.data)
		explicit_bzero(b.data, b.len);
	return *ret ? 0 : IMAGE_REFUSED;
}
