/* A literal of Python in brackets, as ast.literal_eval() takes it: lists, tuples, sets, maps,
 * texts, numbers, True, False, None. */
#pragma once
#include "lib/recipe/config_value.h"

/* NULL: it is none, and stays a text. Tuples and sets are lists. */
struct config_value *config_literal(const char *text, struct config_place place);
/* Shared with config_scalar.c: decimal digits with underscores as a real; NULL when they are
 * none. */
struct config_value *config_real_value(const char *digits, struct config_place place);
