/* See image_check.h. */
#include "lib/model/image_check.h"

#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define CHECKS_MAX 64
#define RELEASE_PART_MAX 999

const char *const image_check_state_names[] = { "ok", "warn", "fail" };
_Static_assert(ELEMENTSOF(image_check_state_names) == _IMAGE_CHECK_STATE_N, "one name each");

static const struct mo_field image_check_fields[] = {
	MO_D(image_check, check, MO_STR, "what was looked at", .max = 64),
	MO_D_ENUM(image_check, state, image_check_state_names,
		  "ok; warn: jobs run, slower or not all; fail: they do not run"),
	MO_D(image_check, text, MO_STR, "what was found", .most = MO_TEXT_MAX),
	MO_D(image_check, next, MO_STR, "what to do; null: nothing", .most = MO_TEXT_MAX),
};
const struct mo_desc image_check_desc = MO_DESC(image_check, image_check_fields);

static const struct mo_field image_checks_fields[] = {
	MO_D(image_checks, image, MO_STR, "the image", .most = MO_TEXT_MAX),
	MO_D(image_checks, user, MO_STR, "as whom it was looked at", .max = MO_LONGEST_NAME),
	MO_D_VEC(image_checks, items, &image_check_desc, "the checks", .max = CHECKS_MAX),
};
const struct mo_desc image_checks_desc = MO_DESC(image_checks, image_checks_fields);

static const struct mo_field amdgpu_release_fields[] = {
	MO_D(amdgpu_release, version, MO_STR, "the driver's, as the kernel says it"),
	MO_D(amdgpu_release, release, MO_STR, "as AMD calls it"),
	MO_D(amdgpu_release, rocm_from, MO_STR, "the oldest ROCm"),
	MO_D(amdgpu_release, rocm_to, MO_STR, "the newest ROCm"),
};
const struct mo_desc amdgpu_release_desc = MO_DESC(amdgpu_release, amdgpu_release_fields);

static const struct mo_field rdma_provider_fields[] = {
	MO_D(rdma_provider, driver, MO_STR, "driver of the card"),
	MO_D(rdma_provider, provider, MO_STR, "its provider of libibverbs"),
};
const struct mo_desc rdma_provider_desc = MO_DESC(rdma_provider, rdma_provider_fields);

static const struct mo_field image_fits_fields[] = {
	MO_D_VEC(image_fits, amdgpu, &amdgpu_release_desc, "releases of amdgpu"),
	MO_D_VEC(image_fits, rdma, &rdma_provider_desc, "cards"),
};
const struct mo_desc image_fits_desc = MO_DESC(image_fits, image_fits_fields);

/* Digits from s on; how many, 0: none, or too large a number. */
static size_t part(const char *s, int64_t *ret)
{
	size_t n = strspn(s, "0123456789");
	_cleanup_(mo_freep) char *digits = mo_strndup(s, n);

	return n > 0 && mo_parse_i64(digits, 0, RELEASE_PART_MAX, ret) == 0 ? n : 0;
}

int64_t image_release(const char *version)
{
	int64_t major = 0, minor = 0;
	size_t n = version ? part(version, &major) : 0;

	if (n == 0 || version[n] != '.' || part(version + n + 1, &minor) == 0)
		return MO_NONE;
	return major * (RELEASE_PART_MAX + 1) + minor;
}

char *image_check_problem(const char *image)
{
	if (image && mo_starts_with(image, IMAGE_DIR "/"))
		return NULL;
	if (image && image[0] == '/')
		return mo_printf("image: %s: say dir:%s", image, image);
	return mo_printf("image: %s cannot be looked at: say dir:/PATH, a directory of the node; "
			 "`moe-image` makes one",
			 image && *image ? image : "nothing");
}
