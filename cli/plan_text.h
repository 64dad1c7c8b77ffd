/* A Plan document for people: what is planned, whether it fits, where the time goes, why the
 * neighbours are worse, what is assumed, what to do next. */
#pragma once
#include "cli/cli.h"
#include "lib/model/recipe.h"

struct json_object;
/* file: as it was given, for the commands that are proposed. */
void plan_text(const struct cli *cli, const char *file, const struct recipe *r,
	       struct json_object *doc);
