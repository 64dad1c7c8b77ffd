/* Starting moe-stepd as a child that leaves. */
#pragma once
#include "agent/step_dir.h"

/* ends with step_dir_started(), or at once with step_dir_start_failed() */
void plain_start(struct step_dir *d);
