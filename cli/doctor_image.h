/* doctor NODE --image IMAGE. */
#pragma once
#include "cli/cli.h"

/* user NULL: as the caller. An exit status: CLI_FAILED where jobs would not run. */
int doctor_image(struct cli *cli, const char *node, const char *image, const char *user);
