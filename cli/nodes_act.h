/* drain, undrain, ack, fence; see nodes_act.c. */
#pragma once
#include "cli/cli.h"
extern const struct verb verb_drain, verb_undrain, verb_ack, verb_fence;
