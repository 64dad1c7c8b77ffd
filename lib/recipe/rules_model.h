/* A model's sizes against each other and against the sharding; see rules_model.c. */
#pragma once
#include "lib/recipe/rules_say.h"

void rules_width(struct rules *k);
void rules_model(struct rules *k);
