/* The one line in which moe-image says why it failed, and its exit status. */
#pragma once
#include "lib/base/error.h"

/* 3: the image or its source is refused, 1: this node or the network could not. */
int failure_told(const char *what, int r, const struct mo_error *err);
