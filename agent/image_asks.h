/* Questions about images: `moectl doctor NODE --image`, for which moe-probe looks, and `moectl
 * image list` and `rm`, for which moe-image does; each in a process of its own with a deadline;
 * here only its start and its answer. */
#pragma once
#include "agent/manager.h"

struct image_asks;
void image_asks_new(struct manager *m, struct image_asks **ret);
struct image_asks *image_asks_free(struct image_asks *a);
/* False: it is another question. */
bool image_query(struct image_asks *a, const struct command *c);
/* Digests of images that steps have, or that the controller wants here. False: of one it is not
 * known. */
bool image_asks_wanted(const struct manager *m, char ***ret, size_t *n_ret);
/* An image may be on its way out: none is brought now that it may be. */
bool image_asks_remove(const struct image_asks *a);
