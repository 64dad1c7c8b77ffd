/* See identity.h. */
#include "lib/base/identity.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX 65536
#define PASSWD_BUFFER (64 * 1024)

uid_t mo_uid(void)
{
	return geteuid();
}

void mo_identity_done(struct mo_identity *who)
{
	free(who->groups);
	free(who->user);
	free(who->home);
	free(who->shell);
	*who = (struct mo_identity){ 0 };
}

static void take_entry(struct mo_identity *who, const struct passwd *pw)
{
	who->uid = pw->pw_uid;
	who->gid = pw->pw_gid;
	mo_str_set(&who->user, pw->pw_name);
	mo_str_set(&who->home, pw->pw_dir && pw->pw_dir[0] ? pw->pw_dir : "/");
	mo_str_set(&who->shell, pw->pw_shell && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh");
}

static void list_groups(struct mo_identity *who)
{
	who->n_groups = 64;
	who->groups = mo_alloc_array((size_t)who->n_groups, sizeof(gid_t));
	while (getgrouplist(who->user, who->gid, who->groups, &who->n_groups) < 0 &&
	       who->n_groups <= GROUPS_MAX)
		who->groups = mo_realloc_array(who->groups, (size_t)who->n_groups, sizeof(gid_t));
}

/* Daemons and the like own files that a job must not touch, and nobody answers for their jobs. */
int mo_identity_system(const struct mo_identity *who, const struct mo_identity_rule *rule,
		       struct mo_error *err)
{
	static const char *const shells[] = { "nologin", "false" };
	const char *slash = strrchr(who->shell, '/'), *shell = slash ? slash + 1 : who->shell;
	if (who->uid == 0 || rule->min_uid <= 0)
		return 0;
	if ((int64_t)who->uid < rule->min_uid)
		return mo_error_set(err, -EPERM,
				    "user '%s' is a system account here (uid %u, below min_uid "
				    "%lld in agent.yaml); submit as an ordinary user",
				    who->user, (unsigned)who->uid, (long long)rule->min_uid);
	for (size_t i = 0; i < ELEMENTSOF(shells); i++)
		if (mo_streq(shell, shells[i]))
			return mo_error_set(err, -EPERM,
					    "user '%s' may not log in here (shell %s); submit as "
					    "an ordinary user, or give the account a shell "
					    "(min_uid: 0 in agent.yaml lets any account run jobs)",
					    who->user, who->shell);
	return 0;
}

int mo_identity_name(uid_t uid, char **ret_user, char **ret_shell)
{
	_cleanup_(mo_freep) char *buffer = mo_alloc(PASSWD_BUFFER);
	struct passwd entry, *found = NULL;

	if (getpwuid_r(uid, &entry, buffer, PASSWD_BUFFER, &found) != 0 || !found)
		return -ENOENT;
	if (ret_user)
		mo_str_set(ret_user, found->pw_name);
	if (ret_shell)
		mo_str_set(ret_shell, found->pw_shell);
	return 0;
}

int mo_identity_resolve(const char *user, const struct mo_identity_rule *rule,
			struct mo_identity *ret, struct mo_error *err)
{
	_cleanup_(mo_identity_done) struct mo_identity who = { 0 };
	_cleanup_(mo_freep) char *buffer = mo_alloc(PASSWD_BUFFER);
	struct passwd entry, *found = NULL;
	uid_t self = mo_uid();
	int r = user ? getpwnam_r(user, &entry, buffer, PASSWD_BUFFER, &found)
		     : getpwuid_r(self, &entry, buffer, PASSWD_BUFFER, &found);
	if (user && !found)
		return mo_error_set(err, -EPERM,
				    "user '%s' does not exist on this node%s%s; create the account "
				    "here or submit as another user",
				    user, r ? ": " : "", r ? strerror(r) : "");
	if (found)
		take_entry(&who, found);
	else {
		/* no account: containers run under any number */
		_cleanup_(mo_freep) char *name = mo_printf("%u", (unsigned)self);
		struct passwd bare = { .pw_uid = self, .pw_gid = getegid(), .pw_name = name };
		take_entry(&who, &bare);
	}
	if (who.uid != self && self != 0)
		return mo_error_set(err, -EPERM,
				    "this agent runs as uid %u and cannot start ranks of user "
				    "'%s'; run the agent as root or submit as its own user",
				    (unsigned)self, user);
	if (who.uid == 0 && !rule->allow_root)
		return mo_error_set(err, -EPERM,
				    "ranks would run as root; submit as an ordinary user, or as an "
				    "admin on the machine of a controller that listens on loopback "
				    "only, with allow_root: true in agent.yaml here");
	who.change = who.uid != self;
	r = who.change && !rule->allow_root ? mo_identity_system(&who, rule, err) : 0;
	if (r < 0)
		return r;
	if (who.change) {
		list_groups(&who);
		if (who.n_groups > GROUPS_MAX)
			return mo_error_set(err, -EPERM, "user '%s' is in more than %d groups",
					    user, GROUPS_MAX);
	}
	*ret = who;
	who = (struct mo_identity){ 0 };
	return 0;
}

int mo_identity_become(const struct mo_identity *who)
{
	if (!who->change)
		return 0;
	if (setgroups((size_t)who->n_groups, who->groups) < 0 ||
	    setresgid(who->gid, who->gid, who->gid) < 0 ||
	    setresuid(who->uid, who->uid, who->uid) < 0)
		return -errno;
	uid_t ru, eu, su;
	gid_t rg, eg, sg;
	if (getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0)
		return -errno;
	bool all = ru == who->uid && eu == who->uid && su == who->uid && rg == who->gid &&
		   eg == who->gid && sg == who->gid && getgroups(0, NULL) == who->n_groups;
	return all && setuid(0) < 0 ? 0 : -EPERM;
}
