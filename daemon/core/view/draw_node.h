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
void draw_node_svg(const struct node_drawing *d, struct mo_buf *out);

/* For both: */
const struct nic_info *draw_nic(const struct nodeinfo *info, const char *name);
const char *draw_use(const struct node_drawing *d, int64_t slot); /* NULL = idle */
/* of slots from to end of info.gpus; a missing one first; NULL = none */
const struct slot_trouble *draw_trouble(const struct node_drawing *d, size_t from, size_t end);
/* Slots i to the returned end (exclusive) are the partitions of one GPU; a whole GPU is its own. */
size_t draw_gpu_end(const struct nodeinfo *info, size_t i);
bool draw_nic_serves(const struct nodeinfo *info, const char *name);
/* "1.24 TB", "-" unknown; caller frees */
char *draw_bytes(int64_t bytes);
/* "96 cores, 192 CPUs, 12 L3 groups of 16" */
char *draw_cores(const struct nodeinfo *info, size_t numa);
/* "hive 5ac1...: GPUs 0-7, each linked to each (weight 15)"; "" none; lines end with \n */
char *draw_links(const struct nodeinfo *info);
/* processor, sockets, memory, driver */
char *draw_summary(const struct nodeinfo *info);
int64_t draw_socket(const struct nodeinfo *info, size_t numa); /* MO_NONE unknown */
