/* drain, undrain, ack, fence; see nodes_act.c. */
#pragma once
#include "cli/verbs.h"
