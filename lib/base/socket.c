/* See socket.h. */
#include "lib/base/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/file.h"

#define WAITING_MAX 8 /* peers of one listener that it has not accepted yet */

static socklen_t address_in(int dir, const char *name, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir, name);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
}

static int open_bound(int type, int dir, const char *name)
{
	struct sockaddr_un a;
	socklen_t n = address_in(dir, name, &a);
	_cleanup_(mo_closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int open_connected(int type, int dir, const char *name)
{
	struct sockaddr_un a;
	socklen_t n = address_in(dir, name, &a);
	_cleanup_(mo_closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, n) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int mo_socket_listen(int dir, const char *name)
{
	_cleanup_(mo_closep) int fd = open_bound(SOCK_STREAM, dir, name);

	if (fd < 0)
		return fd;
	if (listen(fd, WAITING_MAX) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int mo_socket_accept(int listener, uid_t *ret_peer)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (fd < 0)
		return -errno;
	*ret_peer = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 ? peer.uid : (uid_t)-1;
	return fd;
}

int mo_socket_connect(int dir, const char *name)
{
	return open_connected(SOCK_STREAM | SOCK_NONBLOCK, dir, name);
}

int mo_socket_bind(int dir, const char *name)
{
	return open_bound(SOCK_DGRAM, dir, name);
}

int mo_socket_connect_to_bound(int dir, const char *name)
{
	return open_connected(SOCK_DGRAM, dir, name);
}

ssize_t mo_socket_receive(int fd, void *data, size_t n)
{
	return recv(fd, data, n, MSG_DONTWAIT);
}

ssize_t mo_socket_send(int fd, const void *data, size_t n)
{
	return send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int mo_socket_claim(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", name);
	_cleanup_(mo_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&un,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int hold_port(int family, int64_t port)
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

int mo_socket_hold_port(int64_t port)
{
	int fd = hold_port(AF_INET6, port);

	return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ? hold_port(AF_INET, port) : fd;
}

char *mo_socket_interface(const char *address)
{
	struct ifaddrs *list = NULL;
	char *found = NULL;

	if (!address || getifaddrs(&list) < 0)
		return NULL;
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		const void *a = i->ifa_addr;
		char text[INET6_ADDRSTRLEN] = "";
		int family = a ? i->ifa_addr->sa_family : AF_UNSPEC;

		if (family == AF_INET)
			inet_ntop(family, &((const struct sockaddr_in *)a)->sin_addr, text,
				  sizeof(text));
		else if (family == AF_INET6)
			inet_ntop(family, &((const struct sockaddr_in6 *)a)->sin6_addr, text,
				  sizeof(text));
		if (mo_streq(text, address))
			found = mo_strdup(i->ifa_name);
	}
	freeifaddrs(list);
	return found;
}
