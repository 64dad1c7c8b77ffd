/* Whether this machine is going down, as systemd says. What follows is known to ending.c. */
#pragma once
#include <stdbool.h>
#include <systemd/sd-bus.h>

struct shutdown_watch;
enum shutdown_answer {
	SHUTDOWN_UNKNOWN, /* it could not say */
	SHUTDOWN_NONE,
	SHUTDOWN_UNDER_WAY,
};
/* job: one for shutdown.target came or went, as a shutdown begins whoever asked for it, or is given
 * up. answer: to the last shutdown_ask(). 0, or a negative errno. The bus outlives it. */
int shutdown_watch(sd_bus *bus, void (*job)(void *arg),
		   void (*answer)(void *arg, enum shutdown_answer answer), void *arg,
		   struct shutdown_watch **ret);
/* An earlier question is given up. A negative errno: no answer comes. */
int shutdown_ask(struct shutdown_watch *w);
struct shutdown_watch *shutdown_unwatch(struct shutdown_watch *w); /* NULL allowed */
