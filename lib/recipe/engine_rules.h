/* The section `rules:` of an engine file; see engine_rules.c. */
#pragma once
#include "lib/recipe/schema.h"

void engine_rules_read(struct reader *r, const struct key *k, const struct ynode *v);
