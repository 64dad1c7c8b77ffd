/* webhooks.yaml of the site -> receivers of events. */
#pragma once
#include "lib/model/webhook.h"
#include "lib/recipe/errors.h"

/* ret must be initialised. 0, or -EINVAL with errors. */
int webhooks_parse(const char *text, size_t n, struct webhooks_file *ret,
		   struct recipe_errors *errors);
/* A file that nobody else may read (lib/base/secret.h): it holds secrets. 0, or a negative errno
 * with err: path, place and what to do. */
int webhooks_load(const char *path, struct webhooks_file *ret, struct mo_error *err);
