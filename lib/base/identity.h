/* The user that ranks and helpers run as: the name comes from the authenticated submitter, ids and groups only from this node's NSS. Not for pure rooms. */
#pragma once
#include <sys/types.h>
#include "lib/base/error.h"

struct mo_identity { bool change; uid_t uid; gid_t gid; gid_t *groups; int n_groups; char *user, *home, *shell; }; /* change: another user than this process runs as */
void mo_identity_done(struct mo_identity *who);
/* user NULL = this process' own. -EPERM with err when it does not exist or may not be used. NSS may block: never in a daemon's loop. */
int mo_identity_resolve(const char *user, bool allow_root, struct mo_identity *ret, struct mo_error *err);
/* For good. Every step is checked and read back; async-signal-safe. 0, or a negative errno: the caller must end. */
int mo_identity_become(const struct mo_identity *who);
