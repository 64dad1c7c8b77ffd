/* What is read from the lines that ranks print: `lines` of an engine file, `metrics.lines` of a
 * recipe. Private to lib/recipe. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/schema.h"

extern const char *const engine_phases[6]; /* of a heartbeat and of a phase rule, NULL-terminated */
/* A pattern compiles as the agent does it (bytes, not UTF-8: ranks print anything), its named
 * groups are known, `needed` is there (NULL = none). */
void engine_pattern_check(struct reader *r, const struct ynode *v, const char *needed);
/* A list of rules, appended. */
void engine_lines_read(struct recipe_errors *errors, const char *what, const struct ynode *v,
		       struct line_rule **ret, size_t *n_ret);
