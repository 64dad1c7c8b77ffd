/* explain event (explain_event.c). */
#pragma once
#include "cli/cli.h"

/* Prints what events of this type tell and what to do about them; NULL: all types, a line each. No
 * controller is asked: it is what this version knows. */
int explain_event(struct cli *cli, const char *type);
