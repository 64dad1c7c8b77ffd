/* `moectl why`. */
#pragma once
#include <json-c/json.h>
#include "cli/cli.h"

extern const struct verb verb_why;

/* A document of the route Why, to stdout: verdict, reasons, next step. Without all at most twelve
 * lines, and one of them says how much evidence was left out. */
void why_print(const struct cli *cli, const char *subject, struct json_object *why, bool all);
