/* Pipelines as pictures: a row per rank, forward, backward and weight gradients with the numbers
 * of their micro-batches, idle share and memory beside them, all on one time scale. */
#pragma once
#include "cli/plan_pipe.h"
#include "lib/base/buf.h"

#define SVG_LEFT 230
#define SVG_RIGHT 170
struct json_object;
void svg_text(struct mo_buf *b, double x, double y, const char *anchor, const char *s);
/* key: of the JSON member, where there is one; dark: text on it is white */
struct svg_colour {
	const char *name, *colour, *key;
	bool dark;
};
void svg_legend(struct mo_buf *b, const char *title, const struct svg_colour *parts, size_t n,
		double y);

/* Picture points that the rows take at least so that numbers can be read, and how high all of it
 * is. */
struct lanes {
	double width, height, per_second;
};
struct lanes lanes_layout(const struct timeline *lines, size_t n, double least_width);
/* CSS of the rows: to stand once in the picture's <style>. */
void lanes_style(struct mo_buf *b);
void lanes_draw(const struct lanes *l, const struct timeline *lines, size_t n, double y,
		struct mo_buf *b);
