/* Images that jobs of this node need: moe-image brings them, as a process of its own with a
 * deadline; here only its start, how far it is, and its end. */
#pragma once
#include "agent/manager.h"

int images_new(struct manager *m, struct images **ret);
struct images *images_free(struct images *all);
MO_DEFINE_CLEANUP(struct images, images_free)
/* AE_IMAGE with this number will follow, and one with ok at its end. */
void images_bring(struct images *all, int64_t number, const struct image_order *order);
void images_stop(struct images *all, int64_t number);
/* What killed ones left goes, and what is above images_max. */
void images_tidy(struct images *all);
