/* `plan:` of an engine file: which of the engine's keys say what plans know of it
 * (docs/engines.md), and what they say in one recipe (lib/model/traits.h). */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/schema.h"

/* of a row: "A=1 or B>2", "KEY if CONDITIONS" */
#define PLAN_IF " if "
#define PLAN_OR " or "
#define PLAN_SIGNS "!=>"

/* Makes recipe.engine.traits anew; e still has its checks. */
void engine_plan_apply(const struct engine *e, struct recipe *r);
/* The text itself, or one word of a list. */
bool engine_plan_is(const char *said, const char *want, size_t n);
/* False: it is no value of the trait, which then stays as it is. to NULL: only asked. */
bool engine_plan_put(const struct trait *t, const char *text, struct engine_traits *to);
const struct trait *engine_plan_trait(const char *key);
/* A row that says the value itself: "true", "false", and "=VALUE" behind the keys. */
bool engine_plan_is_constant(const struct trait *t, const char *text);
