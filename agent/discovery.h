/* This machine (discovery.c): fills manager.info, and again until it is complete. */
#pragma once
#include "agent/manager.h"

int discovery_new(struct manager *m, struct discovery **ret);
struct discovery *discovery_free(struct discovery *d);
void discovery_begin(struct discovery *d);
/* This machine as the controller knew it in this boot. Where the agent's own memory of this boot
 * is lost, GPUs of it that are no longer on the bus are missing ones; true: some are. */
bool discovery_missing(struct discovery *d, const struct nodeinfo *before);
/* What it lacks and why, NULL nothing; *ret_nothing: nothing is known. */
const char *discovery_lacks(const struct discovery *d, bool *ret_nothing);
/* Appends the devices and areas (host, klog, stack) in which a process hangs that cannot be
 * ended; nothing before the first round ended. */
void discovery_held(const struct discovery *d, char ***ret, size_t *n_ret);
