/* What a word of an engine's configuration is: by YAML 1.1 as PyYAML reads it, as the text that
 * placeholders left, and as a word of the command. Python's rules, not ours: each is pinned by
 * tests/fixtures/primus. */
#pragma once
#include "lib/base/error.h"
#include "lib/recipe/config_value.h"

/* A plain scalar. NULL with err: PyYAML has no value for it (`=`, a date that is none, ..). */
struct config_value *config_yaml_scalar(const char *text, struct config_place place,
					struct mo_error *err);
/* A scalar to which a tag gives its type (!!int, !!float, !!bool, !!null), in quotes or not. */
struct config_value *config_tagged_scalar(const char *text, enum config_kind kind,
					  struct config_place place, struct mo_error *err);
/* A text in which a placeholder was replaced: true, false, whole numbers and numbers are read
 * again. */
struct config_value *config_replaced_scalar(const char *text, struct config_place place);
/* A value of the command line; lists and maps are those of Python. */
struct config_value *config_word_value(const char *word, struct config_place place);
/* Shared with config_scalar.c: decimal digits with underscores as a real; NULL when they are
 * none. */
struct config_value *config_real_value(const char *digits, struct config_place place);
