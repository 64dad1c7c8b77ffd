/* image pull, list, rm: images of the nodes. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_image;
