/* What a recipe says about checkpoints; see rules_saves.c. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_saves(struct rules *k);
