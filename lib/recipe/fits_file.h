/* config/images/fits.yaml -> what of an image must fit the node's kernel. */
#pragma once
#include "lib/model/image_check.h"
#include "lib/recipe/errors.h"

/* ret must be initialised. 0, or -EINVAL with errors. */
int image_fits_parse(const char *text, size_t n, struct image_fits *ret,
		     struct recipe_errors *errors);
/* The installed file (mo_data_file). */
int image_fits_load(struct image_fits *ret, struct mo_error *err);
