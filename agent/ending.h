/* How the agent ends. Alone it may leave at once, as steps run on; when the whole machine goes
 * down, the controller has to hear of both together, or it would place the job here once more.
 * Which of the two it is, systemd is asked: when the agent is told to end, when something
 * happened that a shutdown would explain, and with each job for shutdown.target. Until systemd
 * has answered nothing is reported, and there is no end. */
#pragma once
#include <stdbool.h>
#include "agent/shutdown.h"

struct manager;
struct ending {
	bool begun; /* somebody asked the agent to end */
	struct mo_timer *timer;
	/* this machine is going down: systemd says so; the controller has heard it */
	bool leaving, leaving_sent;
	bool asking;
	struct mo_timer *ask_timer;
	struct shutdown_watch *shutdown; /* NULL: without systemd */
};

/* Ends the loop: at once, or, when the machine goes down, as soon as the controller has what the
 * steps reported last, END_US at most. */
void ending_begin(struct manager *m);
/* Something happened that a shutdown would explain. */
void ending_ask(struct manager *m);
/* After each turn: all may have been acknowledged by now. */
void ending_check(struct manager *m);
int ending_watch(struct manager *m, sd_bus *bus); /* of unit.c; a negative errno */
void ending_unwatch(struct manager *m);           /* before the bus goes */
void ending_done(struct manager *m);
