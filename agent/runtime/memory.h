/* What a runtime answered to the last question for an image, in DIR/image.RUNTIME: `digest` asks
 * for it before an attempt, and `start` a moment later, for 30 to 60 ms of a container's start. */
#pragma once
#include "lib/base/buf.h"

/* A later `start` may know it. What cannot be written is asked anew. text: the answer. */
void memory_write(const char *dir, const char *runtime, const char *image, const char *text);
/* The same text, where it is of this image and at most a minute old; else false. */
bool memory_read(const char *dir, const char *runtime, const char *image, struct mo_buf *ret);
