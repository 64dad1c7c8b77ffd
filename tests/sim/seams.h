/* Clocks and turns of who runs (seams.c): the controller, or an agent. */
#pragma once
struct sim;
struct queued;

void seams_of_node(int node); /* -1: the controller */
/* A timer of that node's agent may be due (an event K_NODE_TIMER). */
void seams_timer(struct sim *s, int node, const struct queued *e);
