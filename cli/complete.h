/* What may follow on a line that is being typed, for the shells (cli/completion). */
#pragma once
#include <stddef.h>
#include "cli/cli.h"

/* argv: the words behind moectl, the last one as far as it was typed, perhaps "". Prints one
 * candidate on each line, with a tab and what it means behind it where that is known; none where a
 * file is meant. Jobs and nodes are asked for from the controller, which has a second; whatever
 * does not work offers nothing. Returns 0. */
int complete(struct cli *cli, const struct verb *const *verbs, size_t n, int argc, char **argv);
