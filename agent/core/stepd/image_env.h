/* What an image says of the environment of its programs becomes the lowest layer of the ranks'.
 * Pure; called by agent/stepd. */
#pragma once
#include "agent/core/stepd/image_config.h"
#include "lib/model/launch.h"

/* Adds to l->env, as its layer ENV_IMAGE, all variables but those that container.env_drop names
 * (patterns as a shell has them), and gives l the image's working directory if it has none. */
void image_apply(const struct image_config *image, struct launch *l);
