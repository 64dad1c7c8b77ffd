/* The dry-run document for people (dryrun.c). */
#pragma once
#include <json-c/json.h>
#include "cli/cli.h"

/* Prints the exact command and environment of every rank; what is equal over ranks, or over
 * those of a node, once. */
void dryrun_print(const struct cli *cli, struct json_object *ranks);
/* A word as a shell takes it. */
struct mo_buf;
void dryrun_word(struct mo_buf *b, const char *word);
