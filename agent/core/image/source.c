/* See source.h. */
#include "agent/core/image/source.h"

#include <errno.h>
#include <string.h>

#include "agent/core/image/oci.h"
#include "lib/base/utf8.h"

#define LAYOUT "oci:"
#define SAVED "docker-archive:"

void source_done(struct source *s)
{
	free(s->path);
	free(s->tag);
	free(s->digest);
	*s = (struct source){ 0 };
}

int source_read(const char *text, struct source *ret, struct mo_error *err)
{
	*ret = (struct source){ 0 };
	if (mo_starts_with(text, LAYOUT)) {
		const char *at = strstr(text, "@sha256:");
		_cleanup_(mo_freep) char *path =
			mo_strndup(text + strlen(LAYOUT),
				   (at ? (size_t)(at - text) : strlen(text)) - strlen(LAYOUT));
		const char *slash = strrchr(path, '/');
		const char *colon = strchr(slash ? slash : path, ':');

		ret->kind = SOURCE_LAYOUT;
		ret->digest = at ? mo_strdup(at + 1) : NULL;
		ret->path = colon ? mo_strndup(path, (size_t)(colon - path)) : mo_strdup(path);
		ret->tag = colon && colon[1] ? mo_strdup(colon + 1) : NULL;
	} else if (mo_starts_with(text, SAVED)) {
		ret->kind = SOURCE_SAVED;
		ret->path = mo_strdup(text + strlen(SAVED));
	}
	if (ret->path && *ret->path && (!ret->digest || oci_digest_valid(ret->digest)))
		return 0;
	source_done(ret);
	if (mo_starts_with(text, "docker://"))
		return mo_error_set(err, IMAGE_REFUSED,
				    "it is in a registry; fetch it first: moe-image fetch %.*s DIR",
				    mo_utf8_shown(text, 200), text);
	return mo_error_set(err, IMAGE_REFUSED,
			    "%.*s is no source of an image; write " LAYOUT "DIR[:TAG] or " SAVED
			    "FILE",
			    mo_utf8_shown(text, 200), text);
}
