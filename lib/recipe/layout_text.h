/* checkpoint.layout of a recipe: how a script that no engine file knows names its checkpoints. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules.h"

/* Makes the engine's layout what the text says, which layout_text_error() passed; what looks like model state stays as it is. */
void layout_from_text(const char *text, struct ckpt_layout *ret);
/* Why the text is none (caller frees); NULL = it is one. */
char *layout_text_error(const char *text);
/* The recipe's rules for checkpoint.layout and checkpoint.resume_args, and what follows for the engine when there is no error. */
void layout_rules(struct rules *k);
void layout_apply(const struct recipe *r, struct engine *e);
