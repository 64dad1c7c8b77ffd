/* checkpoint.layout of a recipe: how a script that no engine file knows names its checkpoints.
 * Private to lib/recipe. */
#pragma once
#include "lib/model/engine.h"

#define LAYOUT_HOLE "{iteration}" /* where the iteration stands in a name */
/* Makes the engine's layout what the text says, which layout_text_error() passed; what looks
 * like model state stays as it is. */
void layout_from_text(const char *text, struct ckpt_layout *ret);
/* Why the text is none (caller frees); NULL = it is one. */
char *layout_text_error(const char *text);
