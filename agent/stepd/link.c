/* The agents' side: a stream socket in the step directory, JSON lines (docs/protocol.md).
 * Nothing here can hold up the step: what a slow agent does not read in time costs it the
 * connection, and it finds everything in the journal. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "agent/stepd/link.h"
#include "agent/stepd/exec.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/base/proc.h"
#include "lib/base/socket.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

static void send_now(struct stepd *s, struct connection *c)
{
	while (c->out.len > 0) {
		ssize_t n = mo_socket_send(c->source.fd, c->out.data, c->out.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			wake_watch(s, &c->source, EPOLLIN | EPOLLOUT);
			return;
		}
		if (n < 0) {
			c->dead = true;
			return;
		}
		mo_buf_consume(&c->out, (size_t)n);
		if (c->out.len == 0)
			wake_watch(s, &c->source, EPOLLIN);
	}
}

static void say(struct stepd *s, struct connection *c, const struct stepd_word *w)
{
	if (c->dead)
		return;
	wire_encode(&stepd_word_desc, w, &c->out);
	mo_buf_add(&c->out, "\n", 1);
	if (c->out.len > STEPD_OUT_MAX)
		c->dead = true;
	else
		send_now(s, c);
}

static void say_up(struct stepd *s, struct connection *c)
{
	struct stepd_word w;
	mo_desc_init(&stepd_word_desc, &w);
	w.up = mo_proc_self();
	w.written = s->journal.written;
	say(s, c, &w);
}

static void obey(struct stepd *s, struct connection *c, const struct stepd_order *o)
{
	if (mo_streq(o->cmd, "ping"))
		say_up(s, c);
	else if (mo_streq(o->cmd, "kill"))
		stepd_queue(s, SE_KILL, NULL);
	else if (mo_streq(o->cmd, "exec"))
		exec_order(s, o->exec);
	else if (mo_streq(o->cmd, "stop")) {
		struct stepd_event *e = stepd_queue(s, SE_STOP, NULL);
		e->signal = o->signal;
		e->grace_us = o->grace_us == MO_NONE ? 0 : o->grace_us;
	} else
		c->dead = true;
}

static void on_connection(struct stepd *s, struct source *source, uint32_t events)
{
	struct connection *c = source->owner;
	if (events & EPOLLOUT)
		send_now(s, c);
	for (;;) {
		char chunk[1024];
		ssize_t n = mo_socket_receive(source->fd, chunk, sizeof(chunk));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			c->dead = true;
			return;
		}
		mo_buf_add(&c->in, chunk, (size_t)n);
		if (c->in.len > STEPD_IN_MAX)
			break;
	}
	for (char *nl; !c->dead && c->in.len > 0 && (nl = memchr(c->in.data, '\n', c->in.len));) {
		struct stepd_order o;
		mo_desc_init(&stepd_order_desc, &o);
		if (wire_decode(&stepd_order_desc, c->in.data, (size_t)(nl - c->in.data), false, &o,
				NULL) < 0)
			c->dead = true;
		else
			obey(s, c, &o);
		mo_desc_done(&stepd_order_desc, &o);
		mo_buf_consume(&c->in, (size_t)(nl - c->in.data) + 1);
	}
	if (c->in.len > STEPD_IN_MAX)
		c->dead = true;
}

static void on_listener(struct stepd *s, struct source *source, uint32_t events)
{
	for (;;) {
		uid_t peer;
		_cleanup_(mo_closep) int fd = mo_socket_accept(source->fd, &peer);
		if (fd < 0)
			return;
		bool allowed = peer == 0 || peer == mo_uid();
		if (!allowed || s->n_connections == STEPD_CONNECTIONS_MAX)
			continue;
		struct connection *c = mo_alloc(sizeof(*c));
		c->source = (struct source){ .fd = TAKE_FD(fd), .fn = on_connection, .owner = c };
		s->connections[s->n_connections++] = c;
		if (wake_watch(s, &c->source, EPOLLIN) < 0)
			c->dead = true;
		say_up(s, c);
	}
}

int link_open(struct stepd *s, struct mo_error *err)
{
	mo_remove_at(s->dir_fd, "sock", 0); /* of a dead stepd: we hold the lock */
	s->listener =
		(struct source){ .fd = mo_socket_listen(s->dir_fd, "sock"), .fn = on_listener };
	if (s->listener.fd < 0)
		return mo_error_set(err, s->listener.fd, "%s/sock: %s", s->dir,
				    strerror(-s->listener.fd));
	int r = wake_watch(s, &s->listener, EPOLLIN);
	return r < 0 ? mo_error_set(err, r, "%s/sock: %s", s->dir, strerror(-r)) : 0;
}

static void drop_dead(struct stepd *s)
{
	for (size_t i = 0; i < s->n_connections;) {
		struct connection *c = s->connections[i];
		if (!c->dead) {
			i++;
			continue;
		}
		wake_unwatch(s, &c->source);
		mo_buf_done(&c->in);
		mo_buf_done(&c->out);
		free(c);
		s->connections[i] = s->connections[--s->n_connections];
	}
}

static void say_progress(struct stepd *s)
{
	struct stepd_word w;
	mo_desc_init(&stepd_word_desc, &w);
	for (size_t i = 0; i < s->n_ranks; i++) {
		struct rank_progress p;
		stepd_core_progress(s->core, i, &p);
		if (!mo_desc_equal(&rank_progress_desc, &p, &s->progress_sent[i]))
			*MO_ADD(&w, progress, &rank_progress_desc) = s->progress_sent[i] = p;
	}
	for (size_t i = 0; w.n_progress > 0 && i < s->n_connections; i++)
		say(s, s->connections[i], &w);
	mo_desc_done(&stepd_word_desc, &w);
	s->progress_due = false;
	s->progress_at_us = mo_clock_boot_us();
}

void link_turn(struct stepd *s)
{
	/* At the end of the turn, when the core has heard all that came with the timer; how far
	 * a rank came is known before its end is. */
	if (s->progress_due &&
	    (s->urgent_due || mo_clock_boot_us() >= s->progress_at_us + PROGRESS_US))
		say_progress(s);
	if (s->note_due && s->journal.pending.len == 0) { /* announced only what can be read */
		struct stepd_word w;
		mo_desc_init(&stepd_word_desc, &w);
		w.written = s->journal.written;
		w.urgent = s->urgent_due;
		for (size_t i = 0; i < s->n_connections; i++)
			say(s, s->connections[i], &w);
		s->note_due = s->urgent_due = false;
	}
	drop_dead(s);
}

void link_tick(struct stepd *s)
{
	int64_t now = mo_clock_boot_us();
	if (s->progress_due && now < s->progress_at_us + PROGRESS_US)
		stepd_tick_in(s, s->progress_at_us + PROGRESS_US - now);
}
