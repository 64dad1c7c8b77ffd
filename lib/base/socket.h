/* The one place that asks this machine for sockets between programs of ours, its ports and its
 * interfaces (docs/decisions/010-seams.md). Not for pure rooms. A socket's name stands in an open
 * directory: the path of one may be longer than an address can hold. Descriptors are CLOEXEC;
 * what fails is a negative errno, and errno stays as it was set. */
#pragma once
#include <sys/types.h>
#include "lib/base/util.h"

/* For streams. -EADDRINUSE: it is there already. */
int mo_socket_listen(int dir, const char *name);
/* -EAGAIN: nobody is waiting. *ret_peer: who it is, (uid_t)-1 when that cannot be said. */
int mo_socket_accept(int listener, uid_t *ret_peer);
int mo_socket_connect(int dir, const char *name); /* to one that listens; it never waits */
/* For datagrams: the receiver's, which never waits, and a sender's. */
int mo_socket_bind(int dir, const char *name);
int mo_socket_connect_to_bound(int dir, const char *name);
/* Neither waits: -1 with errno EAGAIN. */
ssize_t mo_socket_receive(int fd, void *data, size_t n);
ssize_t mo_socket_send(int fd, const void *data, size_t n);
/* A name of this network namespace, which no other can have while the descriptor is open. */
int mo_socket_claim(const char *name);
/* Bound to the port at all addresses, not listening, and no other may listen there but one that
 * says SO_REUSEADDR. Of IPv6 and IPv4, or of IPv4 where this machine has no IPv6. */
int mo_socket_hold_port(int64_t port);
/* The interface that has this numeric address; NULL: none, or it cannot be said. Caller frees. */
char *mo_socket_interface(const char *address);
