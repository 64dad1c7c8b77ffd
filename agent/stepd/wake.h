/* What wakes the supervisor: descriptors, one timer, signals. The seam: here they come from epoll,
 * a timerfd and a signalfd; who links another file with these functions wakes it otherwise
 * (docs/decisions/010-seams.md). What is done then is known to loop.c and to the sources. */
#pragma once
#include "agent/stepd/stepd.h"

/* What is called from wake_wait(), besides the functions of sources. */
struct wake_calls {
	void (*on_time)(struct stepd *s);  /* it is what wake_at() said */
	void (*on_child)(struct stepd *s); /* some child ended: which, waitid says */
	void (*on_end)(struct stepd *s);   /* the machine or an operator ends this process */
};
/* 0, or a negative errno with err. calls outlives s. */
int wake_open(struct stepd *s, const struct wake_calls *calls, struct mo_error *err);
/* Watches the source's descriptor for these events (EPOLLIN, EPOLLOUT; 0: hang-up only), or for
 * others than before. 0, or a negative errno. */
int wake_watch(struct stepd *s, struct source *source, uint32_t events);
/* removes and closes; fine when closed already */
void wake_unwatch(struct stepd *s, struct source *source);
void wake_at(struct stepd *s, int64_t boot_us); /* CLOCK_BOOTTIME; INT64_MAX: not at all */
/* Until something is ready, then calls what it is for, in the order that it came in. 0, or a
 * negative errno with err. */
int wake_wait(struct stepd *s, struct mo_error *err);
