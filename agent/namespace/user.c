/* See user.h. */
#include "agent/namespace/user.h"

#include <errno.h>
#include <grp.h>
#include <sys/fsuid.h>

#include "agent/namespace/report.h"
#include "lib/base/fd.h"
#include "lib/base/userns.h"

static bool alone;

bool user_is_alone(void)
{
	return alone;
}

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
	if (alone)
		return;
	_cleanup_(mo_freep) gid_t *groups = mo_alloc_array(b->n_groups + 1, sizeof(*groups));

	for (size_t i = 0; i < b->n_groups; i++)
		groups[i] = (gid_t)b->groups[i];
	if (setgroups(b->n_groups, groups) < 0)
		report_failure(errno, "take the groups of the user");
	set((uid_t)b->uid, (gid_t)b->gid);
}

void user_end(void)
{
	if (!alone)
		set(0, 0);
}

static int make(const struct mo_userns *map)
{
	int fd = mo_userns_make(map);

	if (fd == -ENOSPC)
		report_failure(ENOSPC, "make a user namespace: this node allows no more of them "
				       "(sysctl user.max_user_namespaces)");
	if (fd == -EPERM)
		report_failure(EPERM, "make a user namespace: this node gives them to root only "
				      "(sysctl kernel.unprivileged_userns_clone, or a policy)");
	if (fd < 0)
		report_failure(-fd, "make a user namespace");
	return fd;
}

static struct mo_userns inside(const struct box *b)
{
	return (struct mo_userns){ .uid = (uid_t)b->uid,
				   .gid = (gid_t)b->gid,
				   .inside_uid = user_inside_uid(b),
				   .inside_gid = user_inside_gid(b) };
}

int user_namespace(const struct box *b)
{
	const struct mo_userns map = inside(b);

	return b->users > BOX_NODE && !alone ? make(&map) : -1;
}

int user_of_files(const struct box *b, uid_t owner, gid_t group)
{
	return make(&(struct mo_userns){ .uid = (uid_t)b->uid,
					 .gid = (gid_t)b->gid,
					 .inside_uid = owner,
					 .inside_gid = group });
}

void user_enter(const struct box *b, int fd)
{
	const struct mo_userns map = inside(b);
	int r = fd < 0 ? 0 : mo_userns_enter(fd, &map);

	if (r < 0)
		report_failure(-r, "enter a user namespace");
}

uid_t user_inside_uid(const struct box *b)
{
	return b->users == BOX_ROOT ? 0 : (uid_t)b->uid;
}

gid_t user_inside_gid(const struct box *b)
{
	return b->users == BOX_ROOT ? 0 : (gid_t)b->gid;
}

void user_enter_alone(const struct box *b)
{
	const struct mo_userns map = inside(b);
	_cleanup_(mo_closep) int fd = make(&map);

	user_enter(b, fd);
	alone = true;
}

uid_t user_uid(const struct box *b)
{
	return alone ? user_inside_uid(b) : (uid_t)b->uid;
}

gid_t user_gid(const struct box *b)
{
	return alone ? user_inside_gid(b) : (gid_t)b->gid;
}
