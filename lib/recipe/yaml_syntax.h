/* What is told of a text that is no YAML. Called by yaml.c. */
#pragma once
#include <libfyaml.h>

#include "lib/recipe/errors.h"

/* Adds one error: a tab or a missing blank where that explains it, else what libfyaml says. */
void yaml_report_syntax(struct fy_diag *diag, const char *text, size_t n,
			struct recipe_errors *errors);
