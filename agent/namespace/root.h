/* The image becomes the root of the namespace. */
#pragma once
#include "agent/core/stepd/box.h"

/* Everything of the node that is needed is copied first, then the root changes, then it is placed:
 * dir: the step's directory, which holds its id. Returns what the image says about itself, as JSON;
 * caller frees. */
char *root_make(const struct box *b, const char *dir);
