/* What the flight recorders of a step's ranks say; see recorder.c. Called by the manager. */
#pragma once
struct step_dir;

/* Has them asked, and queues AE_RECORDER when they have answered, or not: seconds later. */
void recorder_ask(struct step_dir *d);
