/* What `moe-image pull` has written so far, as a report. Pure. */
#pragma once
#include "lib/model/image.h"

/* Sets digest, done, total and unpacking of an initialised report by the last lines that say so. */
void progress_read(const char *out, size_t n, struct image_report *ret);
