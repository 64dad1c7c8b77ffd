/* config/checkpoints/model-state.yaml: what looks like a model's state in a checkpoint
 * directory. Private to lib/recipe. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"

/* Fills state_names and state_bytes of the layout. 0, or -EINVAL with err. */
int model_state_load(struct ckpt_layout *ret, struct mo_error *err);
