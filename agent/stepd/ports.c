/* MASTER_PORT and the three after it. Until the ranks run: bound, not listening, SO_REUSEADDR,
 * so that no other program gets them, and the ranks can. The kernel lets two such sockets share
 * a port, so among the stepds of a host each port is also a name: an abstract UNIX socket, in
 * the same network namespace as the port, free at once when its stepd ends however it ends, and
 * held until no process of the step is left. A port in TIME_WAIT is no obstacle to either. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "agent/stepd/ports.h"
#include "lib/base/fd.h"
#include "lib/base/socket.h"

static int hold_one(struct stepd *s, size_t i)
{
	int64_t port = s->spool.launch.master_port + (int64_t)i;
	if (port < 1 || port > 65535)
		return -EINVAL;
	char name[64];
	snprintf(name, sizeof(name), "moectl/port/%lld", (long long)port);
	s->port_names[i] = mo_socket_claim(name);
	if (s->port_names[i] < 0)
		return s->port_names[i];
	s->port_fds[i] = mo_socket_hold_port(port);
	return s->port_fds[i];
}

int ports_hold(struct stepd *s, struct mo_error *err)
{
	for (size_t i = 0; i < ELEMENTSOF(s->port_fds); i++) {
		int r = hold_one(s, i);
		if (r < 0) {
			ports_release(s);
			ports_forget(s);
			return mo_error_set(err, r, "port %lld on %s: %s",
					    (long long)(s->spool.launch.master_port + (int64_t)i),
					    s->spool.node, strerror(-r));
		}
	}
	return 0;
}

void ports_release(struct stepd *s)
{
	for (size_t i = 0; i < ELEMENTSOF(s->port_fds); i++)
		s->port_fds[i] = mo_close(s->port_fds[i]);
}

void ports_forget(struct stepd *s)
{
	for (size_t i = 0; i < ELEMENTSOF(s->port_names); i++)
		s->port_names[i] = mo_close(s->port_names[i]);
}
