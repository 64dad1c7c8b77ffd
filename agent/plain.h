/* Starting moe-stepd as a child that leaves. */
#pragma once
#include "agent/step_dir.h"

/* ends with step_talk_started(), or at once with step_talk_start_failed() */
void plain_start(struct step_dir *d);
