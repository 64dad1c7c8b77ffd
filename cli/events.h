/* `moectl events`. */
#pragma once
#include "cli/output.h"

extern const struct verb verb_events;
/* Its line. */
void event_print(const struct cli *cli, struct json_object *e);
