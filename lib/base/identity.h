/* The user that ranks and helpers run as: the name comes from the authenticated submitter, ids
 * and groups only from this node's NSS. Not for pure rooms. */
#pragma once
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/error.h"

uid_t mo_uid(void); /* the effective one of this process */
/* change: another user than this process runs as */
struct mo_identity {
	bool change;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int n_groups;
	char *user, *home, *shell;
};
void mo_identity_done(struct mo_identity *who);
/* Which accounts ranks and helpers may run as. allow_root: all of them, root too. Else not root,
 * and no system account: uid below min_uid (0 = any), or a shell that nobody logs in with. */
struct mo_identity_rule {
	bool allow_root;
	int64_t min_uid;
};
/* user NULL = this process' own; an account that this process has already is never a system
 * account. -EPERM with err when it does not exist or may not be used. NSS may block: never in a
 * daemon's loop. */
int mo_identity_resolve(const char *user, const struct mo_identity_rule *rule,
			struct mo_identity *ret, struct mo_error *err);
/* An account that is not this process' own: -EPERM with err when it is a system account by the
 * rule. Looks nothing up. */
int mo_identity_system(const struct mo_identity *who, const struct mo_identity_rule *rule,
		       struct mo_error *err);
/* Who has this uid: the account's name and shell, which the caller frees (NULL: not wanted).
 * -ENOENT: nobody, or the name service does not say. It may block for a while. */
int mo_identity_name(uid_t uid, char **ret_user, char **ret_shell);
/* For good. Every step is checked and read back; async-signal-safe. 0, or a negative errno: the
 * caller must end. */
int mo_identity_become(const struct mo_identity *who);
