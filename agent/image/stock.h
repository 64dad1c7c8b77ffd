/* All images that a node has: everybody's, and in directories below by their uid those that are one
 * user's alone. What the agent asks for `moectl image list` and `rm`. */
#pragma once
#include "agent/image/args.h"
#include "lib/base/error.h"

/* One line of JSON (image_stored) for each; with args.removes only of those, which go where nobody
 * uses them. 0, or an error with err. */
int stock(const struct args *a, struct mo_error *err);
