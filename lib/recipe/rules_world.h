/* Sharding against GPUs, experts, layers and batch; see rules_world.c. */
#pragma once
#include "lib/recipe/rules_say.h"

/* tp, pp and cp one after the other must divide the GPUs; what is left is dp. False = no
 * sharding to go on with. */
bool rules_world(struct rules *k);
void rules_experts(struct rules *k);
void rules_pipeline(struct rules *k);
/* global = micro x dp x a whole number of micro-batches. */
void rules_batch_sizes(struct rules *k, bool world_ok);
