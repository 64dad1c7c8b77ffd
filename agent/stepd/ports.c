/* MASTER_PORT and the three after it. Until the ranks run: bound, not listening, SO_REUSEADDR,
 * so that no other program gets them, and the ranks can. The kernel lets two such sockets share
 * a port, so among the stepds of a host each port is also a name: an abstract UNIX socket, in
 * the same network namespace as the port, free at once when its stepd ends however it ends, and
 * held until no process of the step is left. A port in TIME_WAIT is no obstacle to either. */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent/stepd/ports.h"
#include "lib/base/fd.h"

static int bind_one(int family, int64_t port)
{
	_cleanup_(mo_closep) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, zero = 0;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port),
				    .sin6_addr = in6addr_any };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr = { htonl(INADDR_ANY) } };
	bool v6 = family == AF_INET6;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0))
		return -errno;
	if (bind(fd, v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four,
		 v6 ? sizeof(six) : sizeof(four)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int claim_name(int64_t port)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "moectl/port/%lld",
			 (long long)port);
	_cleanup_(mo_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&un,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int hold_one(struct stepd *s, size_t i)
{
	int64_t port = s->spool.launch.master_port + (int64_t)i;
	if (port < 1 || port > 65535)
		return -EINVAL;
	int fd = s->port_names[i] = claim_name(port);
	if (fd < 0)
		return fd;
	fd = bind_one(AF_INET6, port);
	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
		fd = bind_one(AF_INET, port);
	s->port_fds[i] = fd;
	return fd;
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
