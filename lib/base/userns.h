/* User namespaces of one user and one group. Not for pure rooms. */
#pragma once
#include "lib/base/identity.h"

/* The uid and gid of this node that are those numbers inside. */
struct mo_userns {
	uid_t uid, inside_uid;
	gid_t gid, inside_gid;
};
/* A new user namespace in which there is only that account; who enters it has every right over what
 * is made in it, and none outside. It is owned by this process' user and lives as long as the
 * descriptor, or a process in it. This process must be root, or that account itself: then its other
 * groups stay as they are for good. Returns the descriptor, or a negative errno: -ENOSPC,
 * user.max_user_namespaces; -EPERM, this machine lets only root make them. */
int mo_userns_make(const struct mo_userns *map);
/* Enters it, with a mount namespace of its own that is a copy of this one's, as the account. The
 * working directory is the same one in the copy. 0, or a negative errno. */
int mo_userns_enter(int fd, const struct mo_userns *map);
/* As mo_identity_become(), for good, in that user namespace and in the mount namespace that belongs
 * to it: the account is root there, or, where this process is that account already, what it is
 * there. As root it may change files of the account whatever their mode and owner; it can neither
 * mount nor change its root. Its other groups still open devices, though they have no names there.
 * Async-signal-safe. 0, or a negative errno: the caller must end. */
int mo_userns_become(int user_fd, int mnt_fd, const struct mo_identity *who);
