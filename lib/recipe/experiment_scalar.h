/* A scalar of an experiment's file; see experiment_scalar.c. */
#pragma once
#include "lib/recipe/experiment_file.h"
#include "lib/recipe/tree.h"

struct config_value *experiment_scalar(struct experiment_reader *r, const struct ynode *n,
				       struct config_place place);
/* An error at a place. Always -EINVAL. */
int experiment_error(struct experiment_reader *r, struct config_place place, const char *hint,
		     const char *fmt, ...) _printf_(4, 5);
/* A scalar by its text and tag alone, no placeholder in it. NULL with err: it is none. */
struct config_value *experiment_yaml_value(const struct ynode *n, struct config_place place,
					   struct mo_error *err);
