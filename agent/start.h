/* Starting a step's supervisor, in the way that this node has. */
#pragma once
#include "agent/manager.h"

void step_start(struct step_dir *d);
