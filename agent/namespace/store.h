/* An image in the store of a container runtime: which directories it is. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/runtime_image.h"

/* Has moe-runtime ask, and keep the image for the step, or start a container of it; before the
 * mount namespace is made, in which the runtime's own mounts would stay. dir: of the step. ret is
 * initialised. */
void store_ask(const struct box *b, const char *dir, struct runtime_image *ret);
/* What the runtime says of the image's programs. Ends the maker where it cannot be used. */
void store_config(const struct runtime_image *stored, struct image_config *ret);
