/* See wake.h. */
#include "agent/stepd/wake.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "lib/base/fd.h"

/* more than a node has descriptors of ranks: the order of deaths is kept within one batch */
#define EVENTS_PER_WAKE 1024

int wake_watch(struct stepd *s, struct source *source, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = source };
	int op = source->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (epoll_ctl(s->epoll_fd, op, source->fd, &e) < 0)
		return -errno;
	source->watched = true;
	return 0;
}

void wake_unwatch(struct stepd *s, struct source *source)
{
	if (source->watched)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->watched = false;
	source->fd = mo_close(source->fd);
}

void wake_at(struct stepd *s, int64_t boot_us)
{
	struct itimerspec t = { 0 };

	if (boot_us != INT64_MAX) {
		boot_us = MO_MAX(boot_us, 1); /* 0 would disarm it */
		t.it_value = (struct timespec){ .tv_sec = boot_us / 1000000,
						.tv_nsec = boot_us % 1000000 * 1000 };
	}
	timerfd_settime(s->timer.fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void on_timer(struct stepd *s, struct source *source, uint32_t events)
{
	uint64_t count;

	if (mo_read(source->fd, &count, sizeof(count)) >= 0)
		s->wake->on_time(s);
}

static void on_signals(struct stepd *s, struct source *source, uint32_t events)
{
	struct signalfd_siginfo si;

	while (mo_read(source->fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo == SIGCHLD)
			s->wake->on_child(s);
		else
			s->wake->on_end(s);
}

static int open_signals(struct stepd *s)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return -errno;
	s->signals = (struct source){ .fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK),
				      .fn = on_signals };
	if (s->signals.fd < 0)
		return -errno;
	return wake_watch(s, &s->signals, EPOLLIN);
}

int wake_open(struct stepd *s, const struct wake_calls *calls, struct mo_error *err)
{
	s->wake = calls;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->timer =
		(struct source){ .fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
				 .fn = on_timer };
	if (s->epoll_fd < 0 || s->timer.fd < 0)
		return mo_error_set(err, -errno, "epoll, timerfd: %s", strerror(errno));
	int r = wake_watch(s, &s->timer, EPOLLIN);
	if (r == 0)
		r = open_signals(s);
	return r < 0 ? mo_error_set(err, r, "signalfd: %s", strerror(-r)) : 0;
}

int wake_wait(struct stepd *s, struct mo_error *err)
{
	static struct epoll_event events[EVENTS_PER_WAKE];
	int n = epoll_wait(s->epoll_fd, events, EVENTS_PER_WAKE, -1);

	if (n < 0 && errno != EINTR)
		return mo_error_set(err, -errno, "epoll_wait: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		struct source *source = events[i].data.ptr;

		if (source->fd >= 0) /* closed earlier in this batch */
			source->fn(s, source, events[i].events);
	}
	return 0;
}
