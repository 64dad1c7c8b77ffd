/* A way to start the supervisors of steps: as systemd services (unit.c), or one held in reserve
 * and else a child that leaves (reserve.c, plain.c). start.c chooses, once. */
#pragma once
#include "agent/step_dir.h"

struct starter {
	/* Ends with step_talk_started(), or at once with step_talk_start_failed(). */
	void (*start)(struct starter *s, struct step_dir *d);
	void (*free)(struct starter *s);
	/* the supervisor's cgroup is its unit's: the agent makes none */
	bool in_units;
};
