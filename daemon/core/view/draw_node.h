/* A node as a picture: its NUMA nodes, the GPUs on them, the NICs that serve them, what runs on
 * the slots. Pure: a nodeinfo goes in, text or SVG comes out. Used by moectl node and by GET
 * /v1/nodes/{name}/topology. */
#pragma once
#include "lib/base/buf.h"
#include "lib/model/nodeinfo.h"

struct slot_use {
	int64_t slot;
	const char *text;
}; /* "j-3 rank 5" */
/* "missing since ... (gpu.count)" */
struct slot_trouble {
	int64_t slot;
	bool missing;
	const char *text;
};
struct node_drawing {
	const char *name, *state; /* state may be NULL */
	const struct nodeinfo *info;
	const struct slot_use *uses;
	size_t n_uses;
	const struct slot_trouble *troubles;
	size_t n_troubles;
	/* lines below the picture, as its findings */
	const char *const *notes;
	size_t n_notes;
	int width; /* text: columns; 0 = 100 */
};
void draw_node_text(const struct node_drawing *d, struct mo_buf *out);
