/* The section `plan:` of an engine file; see engine_plan_read.c. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"
#include "lib/recipe/schema.h"

void engine_plan_read(struct reader *r, const struct key *k, const struct ynode *v);
/* A file by itself: the one that counts, or the one that came with this version. */
typedef int engine_plan_loader(const char *kind, bool shipped, struct engine *ret,
			       struct mo_error *err);
/* Puts the rows of the engines that `like` names behind its own. A file without the section has
 * those of the one that came with this version under its name, else of the kind that its name
 * begins with (but for `sharding_told`), else of `command`. 0, or -errno with err. */
int engine_plan_finish(struct engine *e, engine_plan_loader *load, struct mo_error *err);
