/* The picture of a node as SVG; see draw_node.h. */
#pragma once
#include "daemon/core/view/draw_node.h"

void draw_node_svg(const struct node_drawing *d, struct mo_buf *out);
