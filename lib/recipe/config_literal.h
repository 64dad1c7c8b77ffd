/* A literal of Python in brackets, as ast.literal_eval() takes it: lists, tuples, sets, maps,
 * texts, numbers, True, False, None. */
#pragma once
#include "lib/recipe/config_value.h"

/* NULL: it is none, and stays a text. Tuples and sets are lists. */
struct config_value *config_literal(const char *text, struct config_place place);
