/* What a child of an open `moectl top` asks and prints for it (errand.h). arg: the struct top. */
#pragma once
#include "cli/cli.h"

/* Lines about the cluster, a form feed, the lines of the pane. */
int top_print_pane(struct cli *cli, void *arg);
/* What the act would mean for its target, with numbers: a sentence. */
int top_print_act(struct cli *cli, void *arg);
/* Acts, by the verb of that name, and prints what it says. */
int top_act(struct cli *cli, void *arg);
