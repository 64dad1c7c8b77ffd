/* Draws an open `moectl top`. */
#pragma once
#include "cli/cli.h"
#include "cli/top_state.h"

/* The whole screen, to stdout; width and height: cli's. age_s: of what is shown. Sets t->rows. */
void top_draw(const struct cli *cli, struct top *t, double age_s);
