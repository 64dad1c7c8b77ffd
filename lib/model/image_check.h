/* `moectl doctor NODE --image IMAGE`: what of an image and a node fits, before a job is launched.
 * The controller asks the node's agent, moe-probe looks and judges, and what it says is shown.
 * Plain values; described for the way back. */
#pragma once
#include "lib/base/desc.h"

#define IMAGE_CHECK_WHAT "image" /* command.what of such a question */
#define IMAGE_DIR "dir:"         /* and a path behind it: the images that can be looked at */

/* Why it cannot be looked at: a sentence that begins with the word; NULL: it can. Caller frees. */
char *image_check_problem(const char *image);

/* WARN: jobs run, and something is slower or may fail; FAIL: they do not run */
enum image_check_state { IMAGE_OK, IMAGE_WARN, IMAGE_FAIL, _IMAGE_CHECK_STATE_N };
extern const char *const image_check_state_names[_IMAGE_CHECK_STATE_N];
struct image_check {
	char *check; /* image.python */
	int state;   /* enum image_check_state */
	char *text;  /* what was found, with its evidence */
	char *next;  /* what to do; NULL: nothing */
};
struct image_checks {
	char *image, *user; /* as whom it was looked at */
	struct image_check *items;
	size_t n_items;
};
extern const struct mo_desc image_check_desc, image_checks_desc;
MO_DEFINE_DONE(image_checks)

/* Which ROCm releases AMD supports over a driver, as MAJOR.MINOR, both ends included. */
struct amdgpu_release {
	char *version; /* /sys/module/amdgpu/version */
	char *release; /* as AMD calls it */
	char *rocm_from, *rocm_to;
};
/* Which provider of libibverbs a card needs. */
struct rdma_provider {
	char *driver; /* of the card, as /sys/class/infiniband has it */
	char *provider;
};
/* 6003 of "6.3", "6.3.1-48"; MO_NONE: it begins with no two numbers. */
int64_t image_release(const char *version);
/* config/images/fits.yaml */
struct image_fits {
	struct amdgpu_release *amdgpu;
	size_t n_amdgpu;
	struct rdma_provider *rdma;
	size_t n_rdma;
};
extern const struct mo_desc amdgpu_release_desc, rdma_provider_desc, image_fits_desc;
MO_DEFINE_DONE(image_fits)
