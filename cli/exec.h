/* moectl exec; see exec.c. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_exec;
