/* The result of a check goes into the job that it was made for: `why` of it has the verdict. */
#pragma once
#include "cli/cli.h"

struct json_object;

/* doc: of fabric_document(). 0 or an exit status (printed). */
int fabric_post(struct cli *cli, const char *job, struct json_object *doc);
