/* The words of a drawing of a node, for its text and its SVG; see draw_words.c. */
#pragma once
#include "daemon/core/view/draw_node.h"

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
int64_t draw_socket(const struct nodeinfo *info, size_t numa); /* MO_NONE unknown */
/* processor, sockets, memory, driver */
char *draw_summary(const struct nodeinfo *info);
/* "hive 5ac1...: GPUs 0-7, each linked to each (weight 15)"; "" none; lines end with \n */
char *draw_links(const struct nodeinfo *info);
