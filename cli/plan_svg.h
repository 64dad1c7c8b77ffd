/* A picture of a Plan document: per plan one bar of memory parts against the capacity and one of
 * step-time parts; below them pipelines, a row per rank, all on one time scale. */
#pragma once
#include <json-c/json.h>
#include "cli/plan_pipe.h"
#include "lib/base/buf.h"

/* Appends a stand-alone SVG of the first plans (8 at most). Colours keep apart for colour-blind
 * readers; every part carries its name and value as a title. */
void plan_svg(struct json_object *doc, const struct timeline *lines, size_t n_lines,
	      struct mo_buf *b);
