/* The dry-run document for people (dryrun.c). */
#pragma once
#include <json-c/json.h>
#include "cli/cli.h"

/* Prints the exact command and environment of every rank; what is equal over ranks, or over those of a node, once. */
void dryrun_print(const struct cli *cli, struct json_object *ranks);
