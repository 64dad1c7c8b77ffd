/* Steps that a node does not start before a GPU is given back; see release.c. */
#pragma once
#include "lib/model/message.h"

struct core;
struct turn;

/* The newest word of the node's agent about all its steps. */
void release_reports(struct turn *t, const char *node, const struct step_report *steps, size_t n);
/* How many steps wait, on all nodes. */
int64_t core_steps_waiting(const struct core *c);
