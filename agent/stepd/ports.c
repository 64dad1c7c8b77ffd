/* MASTER_PORT and the three after it: bound, not listening, SO_REUSEADDR, so that nobody else takes them before the ranks listen there, and the ranks can. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "agent/stepd/stepd.h"
#include "lib/base/fd.h"

static int bind_one(int family, int64_t port) {
	_cleanup_(mo_closep) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, zero = 0;
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_ANY)}};
	bool v6 = family == AF_INET6;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 || (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0))
		return -errno;
	if (bind(fd, v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four, v6 ? sizeof(six) : sizeof(four)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int ports_hold(struct stepd *s, struct mo_error *err) {
	int64_t first = s->spool.launch.master_port;
	for (size_t i = 0; i < ELEMENTSOF(s->port_fds); i++) {
		int fd = first + (int64_t)i > 65535 ? -EINVAL : bind_one(AF_INET6, first + (int64_t)i);
		if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
			fd = bind_one(AF_INET, first + (int64_t)i);
		if (fd < 0) {
			ports_release(s);
			return mo_error_set(err, fd, "port %lld on %s: %s", (long long)(first + (int64_t)i), s->spool.node, strerror(-fd));
		}
		s->port_fds[i] = fd;
	}
	return 0;
}

void ports_release(struct stepd *s) {
	for (size_t i = 0; i < ELEMENTSOF(s->port_fds); i++)
		s->port_fds[i] = mo_close(s->port_fds[i]);
}
