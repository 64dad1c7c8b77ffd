/* See image.h. */
#include "lib/model/image.h"

#include <string.h>

#include "lib/model/reference.h"

#define DIGEST_MAX 128
#define NAME_MAX_BYTES 4096

const char *const image_pull_names[_IMAGE_PULL_N] = { "missing", "never" };

static const struct {
	const char *begins;
	int source;
} sources[] = {
	{ IMAGE_DIR, IMAGE_OF_DIR },       { IMAGE_LAYOUT, IMAGE_OF_LAYOUT },
	{ IMAGE_SAVED, IMAGE_OF_ARCHIVE }, { IMAGE_REGISTRY, IMAGE_OF_REGISTRY },
	{ "docker:", IMAGE_OF_STORE },     { "podman:", IMAGE_OF_STORE },
	{ "squashfs:", IMAGE_OF_FILE },
};

int image_source(const char *image)
{
	for (size_t i = 0; i < ELEMENTSOF(sources); i++)
		if (mo_starts_with(image, sources[i].begins))
			return sources[i].source;
	return IMAGE_OF_REGISTRY;
}

bool image_lies_there(const char *image)
{
	int source = image_source(image);

	return source == IMAGE_OF_DIR || source == IMAGE_OF_FILE;
}

static const struct mo_field image_order_fields[] = {
	MO_D(image_order, image, MO_STR, "the image, as the recipe says it"),
	MO_D(image_order, digest, MO_STR, "the one that is meant; null: what the name means now",
	     .omit = true),
	MO_D(image_order, user, MO_STR, "for whom alone it is fetched; null: for everybody",
	     .omit = true),
	MO_D(image_order, auth_file, MO_STR, "file of that user with passwords of registries",
	     .omit = true),
	MO_D_ENUM(image_order, pull, image_pull_names, "whether what is missing is brought"),
	MO_D(image_order, allow_root, MO_BOOL, "that user may be root", .omit = true),
};
const struct mo_desc image_order_desc = MO_DESC(image_order, image_order_fields);

static const struct mo_field image_report_fields[] = {
	MO_D(image_report, image, MO_STR, "the image, as it was ordered", .max = NAME_MAX_BYTES),
	MO_D(image_report, user, MO_STR, "for whom alone it is there; null: for everybody",
	     .omit = true, .max = 64),
	MO_D(image_report, digest, MO_STR, "its digest, as soon as it is known", .omit = true,
	     .max = DIGEST_MAX),
	MO_D(image_report, ready, MO_BOOL, "the node has all of it", .omit = true),
	MO_D(image_report, unpacking, MO_BOOL, "it is being unpacked: `done` counts what is read",
	     .omit = true),
	MO_D(image_report, done, MO_INT, "bytes so far", .omit = true, .most = MO_FIT_INT),
	MO_D(image_report, total, MO_INT, "bytes of all", .omit = true, .most = MO_FIT_INT),
	MO_D(image_report, error, MO_STR, "why the last try failed", .omit = true,
	     .max = NAME_MAX_BYTES),
	MO_D(image_report, refused, MO_BOOL, "it will fail so again", .omit = true),
	MO_D(image_report, tries, MO_INT, "tries that failed", .omit = true, .most = MO_FIT_INT),
	MO_D(image_report, job, MO_INT, "newest job that wanted it when the last try began",
	     .omit = true, .most = MO_FIT_INT),
};
const struct mo_desc image_report_desc = MO_DESC(image_report, image_report_fields);

bool image_answers(const struct image_report *r, const struct image_order *o)
{
	return mo_streq(r->image, o->image) && mo_streq(r->user, o->user) &&
	       (!o->digest || mo_streq(r->digest, o->digest));
}

bool image_digest_valid(const char *s)
{
	return oci_digest_valid(s && mo_starts_with(s, "id:") ? s + strlen("id:") : s);
}

char *image_dir_name(const char *digest)
{
	char *name = mo_strdup(digest);

	for (char *s = name; (s = strchr(s, ':')); s++)
		*s = '-';
	return name;
}
