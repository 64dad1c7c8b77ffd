/* fabric: what measurements of the fabric say. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_fabric;
