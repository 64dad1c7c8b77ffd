/* The matrix of a job's ranks (GET /v1/jobs/{id}/matrix) as text: a character for each rank, a row
 * for each pipeline stage, in the order of the mesh. Words are the letters of the answer; numbers
 * become how far a rank is from the middle of its stage. Pure; printed by ranks_heat.c. */
#pragma once
#include <json-c/json.h>
#include "lib/base/buf.h"

/* Puts the ranks of a page behind those of the document, which then ends where the page does.
 * False: it is of another attempt or metric, and nothing was changed. */
bool heat_join(struct json_object *doc, struct json_object *page);
/* Of several pages: the ten ranks that differ most of all are left in `worst`. */
void heat_pick_worst(struct json_object *doc);
/* Lines of at most width columns where one has room for a few ranks. colour: shades too. */
void heat_map(struct json_object *doc, int width, bool colour, struct mo_buf *ret);
/* What the characters stand for. */
void heat_legend(struct json_object *doc, int width, struct mo_buf *ret);
