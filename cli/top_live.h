/* `moectl top` on a terminal: open until q or Ctrl-C. */
#pragma once
#include "cli/cli.h"

/* The controller has answered once. An exit status. */
int top_live(struct cli *cli);
