/* By which names an image was asked for: the file `names` in its directory, a line each, for
 * people. Nothing depends on it. */
#pragma once
#include "lib/base/desc.h"

/* The newest goes last. What cannot be written is left out. */
void names_add(const char *image_dir, const char *name);
/* Appended to a list; none when the file cannot be read. */
void names_read(int image_dir, char ***ret, size_t *n_ret);
