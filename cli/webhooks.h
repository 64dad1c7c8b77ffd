/* `moectl webhooks`. */
#pragma once
#include "cli/cli.h"

extern const struct verb verb_webhooks;
