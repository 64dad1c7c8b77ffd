/* What a dead supervisor left behind (sweep.c). */
#pragma once
#include "agent/manager.h"

void step_sweep(struct step_dir *d); /* until nothing is found: AE_SWEPT */
