/* What an image says about itself: the variables that its programs expect, and the directory that
 * they are started in. Read by moe-namespace from files of somebody's image, so nothing in them is
 * trusted; moe-stepd gets it as JSON and makes of it the lowest layer of the ranks' environment. */
#pragma once
#include "lib/base/desc.h"
#include "lib/base/error.h"

/* of the file that it is read from, and of what is made of it */
#define IMAGE_CONFIG_BYTES_MAX (1024 * 1024)
#define IMAGE_VARIABLES_MAX 4096
/* the answer of moe-namespace: each byte of a value may be written as six */
#define IMAGE_CONFIG_JSON_MAX (8 * IMAGE_CONFIG_BYTES_MAX)

struct image_variable {
	char *name, *value;
};
/* Each name once; valid UTF-8; no NUL. */
struct image_config {
	struct image_variable *env;
	size_t n_env;
	char *workdir; /* absolute; NULL: the image does not say */
	char *digest;  /* of its manifest, or id: and its id; NULL: it is not known */
};
extern const struct mo_desc image_variable_desc, image_config_desc;
MO_DEFINE_DONE(image_config)

/* Of config.json of an OCI bundle (runtime specification 1.0), what is looked at. */
struct image_process {
	char **env; /* NAME=VALUE */
	size_t n_env;
	char *cwd;
};
struct image_bundle {
	struct image_process *process; /* NULL: none */
};
extern const struct mo_desc image_bundle_desc;
MO_DEFINE_DONE(image_bundle)

/* Both: -EINVAL or -E2BIG with err, and *ret, which is initialised, is to be thrown away. What is
 * no assignment to a name ([A-Za-z_][A-Za-z0-9_]*) is passed over; the last of a name counts. */
int image_config_bundle(const struct image_bundle *b, struct image_config *ret,
			struct mo_error *err);
/* /etc/environment as pam_env(8) reads it, where enroot writes the variables of an image: lines
 * NAME=VALUE, `export ` before it and one pair of quotes around the value are taken away, lines
 * that begin with # are none. */
int image_config_environment(const char *text, size_t n, struct image_config *ret,
			     struct mo_error *err);
