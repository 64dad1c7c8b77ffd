/* An image from wherever it is into a directory of images, as the agent orders it for a job. */
#pragma once
#include "agent/image/args.h"
#include "lib/base/error.h"

/* Looks in the cache first. 0; a negative errno with err; or the exit status of the part that
 * failed and has said why. Says on standard output which image it is as soon as that is known, how
 * far it is, and last its digest. What it leaves when it is killed ends with .partial. */
int pull(const struct args *a, const char *cache, const char *architecture, struct mo_error *err);
