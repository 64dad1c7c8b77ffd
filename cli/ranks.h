/* `moectl ranks`. */
#pragma once
#include "cli/output.h"

extern const struct verb verb_ranks;
/* The place of a rank in the mesh: "TP PP EP CP DP". */
void ranks_coords_cell(struct table *t, struct json_object *rank);
