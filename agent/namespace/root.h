/* The image becomes the root of the namespace. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/runtime_image.h"

/* Everything of the node that is needed is copied first, then the root changes, then it is placed:
 * dir: the step's directory, which holds its id; stored: of an image in a store. Returns what the
 * image says about itself, as JSON; caller frees. */
char *root_make(const struct box *b, const struct runtime_image *stored, const char *dir);
