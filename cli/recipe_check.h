/* A recipe file of the command line, checked as the controller would. */
#pragma once
#include "cli/recipe.h"

/* Parses and checks with the controller's own code; warnings go to stderr. 0, or CLI_USAGE with
 * FILE:LINE:COL lines on stderr and, with --json, the 422 document on stdout. */
int recipe_input_check(struct cli *cli, struct recipe_input *in);
