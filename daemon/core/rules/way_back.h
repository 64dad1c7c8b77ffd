/* The way back of a node from a cordon that what its GPUs did has caused: before `undrain` gives it
 * work, its agent runs the programs of doubt (gpu.canary), and what they find, or that they could
 * not be run, keeps it cordoned.
 *   asked     REC_DRAIN, step check: a CHECK of job 0 is due for the node (commands.c)
 *   answered  passed: as any undrain; else: step check without a time, and why
 * Not asked of agents without such programs; one that was skipped there holds nothing up. Called by
 * fleet_verbs.c, cordon.c and silence.c. */
#pragma once
#include "daemon/core/state/state.h"

struct core;
struct turn;

/* `undrain` of this node has to wait for its programs. */
bool way_back_leads(const struct core *c, const struct node *n);
/* Replies. */
void way_back_begin(struct turn *t, const struct node *n);
/* After a word of its agent, and in time: ends what is answered or late. When it is to be called
 * again; INT64_MAX: for no time. */
int64_t way_back_pass(struct turn *t, const struct node *n);
/* The worst that a program of doubt said of the node, as far as that would cordon; NULL: nothing
 * against it. */
const struct check_result *way_back_against(const struct node *n);
/* The node takes work again, and there may be room for the cordon of another. */
void way_back_open(struct turn *t, const char *node);
