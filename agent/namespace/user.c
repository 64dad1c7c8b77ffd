/* See user.h. */
#include "agent/namespace/user.h"

#include <errno.h>
#include <grp.h>
#include <sys/fsuid.h>

#include "agent/namespace/report.h"

/* setfsuid(2) says only what was before: asked for nobody it changes nothing. */
static void set(uid_t uid, gid_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	if ((uid_t)setfsuid((uid_t)-1) != uid || (gid_t)setfsgid((gid_t)-1) != gid)
		report_failure(EPERM, "look at files as the user (uid %u)", (unsigned)uid);
}

void user_begin(const struct box *b)
{
	_cleanup_(mo_freep) gid_t *groups = mo_alloc_array(b->n_groups + 1, sizeof(*groups));

	for (size_t i = 0; i < b->n_groups; i++)
		groups[i] = (gid_t)b->groups[i];
	if (setgroups(b->n_groups, groups) < 0)
		report_failure(errno, "take the groups of the user");
	set((uid_t)b->uid, (gid_t)b->gid);
}

void user_end(void)
{
	set(0, 0);
}
