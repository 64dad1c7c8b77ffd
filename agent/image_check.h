/* `moectl doctor NODE --image`: moe-probe looks, in a process of its own with a deadline; here only
 * its start and its answer. */
#pragma once
#include "agent/manager.h"

struct image_asks;
void image_asks_new(struct manager *m, struct image_asks **ret);
struct image_asks *image_asks_free(struct image_asks *a);
/* False: it is another question. */
bool image_query(struct image_asks *a, const struct command *c);
