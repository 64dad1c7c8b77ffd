/* The release before: what one whose records were of version 2 first (commit 33bc1e30) would have
 * left on a disk, or said, where production of now did. Its keys are ours without those that came
 * later (tests/before_keys.h). Whole records of a type that came later stay: what such a release
 * did not do, it would have done otherwise, and nobody knows how. */
#pragma once
#include <stddef.h>

#include "lib/base/desc.h"
#include "tests/sim/sim.h"

/* JSON of an object of d without them; caller frees. */
char *before_text(const struct mo_desc *d, const char *text, size_t n);
/* The controller is down: its log and snapshot are as that release would have left them, and the
 * shadow is what they become. */
void before_store(struct sim *s);
/* The same of an agent's directories. It is down. */
void before_node(struct sim *s, int node);
