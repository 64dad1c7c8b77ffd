/* `moectl cancel`, `moectl pause`, `moectl resume`, `moectl restart`. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_cancel, verb_pause, verb_resume, verb_restart;
