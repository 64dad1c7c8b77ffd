/* See account.h. */
#include "agent/namespace/account.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "agent/namespace/targets.h"
#include "agent/namespace/user.h"
#include "lib/base/fd.h"

#define PASSWD "/etc/passwd"

/* No field of a line can hold these. */
static bool is_field(const char *s)
{
	return s && *s && !strpbrk(s, ":\n");
}

void account_read(const struct box *b, const struct image *image, struct mo_buf *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf own = { 0 };

	if (!is_field(b->user))
		return;
	mo_buf_printf(ret, "%s:x:%u:%u::%s:/bin/sh\n", b->user, user_inside_uid(b),
		      user_inside_gid(b), is_field(b->home) ? b->home : "/");
	if (image_file(image->root, &PASSWD[1], &own) == 0)
		mo_buf_add(ret, own.data, own.len);
}

void account_copy(const struct mo_buf *passwd, const char *dir, struct mount *ret)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "passwd");
	int r = mo_write_file(path, passwd->data, passwd->len, 0444, false);

	if (r < 0)
		report_failure(-r, "write a list of accounts");
	mount_copy(path, PASSWD, FLAG_NOSUID | FLAG_NODEV | FLAG_NOEXEC | FLAG_RDONLY, false,
		   "the agent", ret);
	ret->source = "the list of accounts"; /* path ends here */
}

void account_home(const struct box *b)
{
	if (!b->home || b->home[0] != '/' || b->home[1] == '\0')
		return;
	_cleanup_(mo_closep) int there = kernel_open_in(AT_FDCWD, b->home, O_PATH | O_NOFOLLOW);

	if (there != -ENOENT)
		return;
	_cleanup_(mo_closep) int made = target_open(b->home, true);
	_cleanup_(mo_closep) int home =
		mo_open_at(AT_FDCWD, b->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (home < 0 || mo_chown_fd(home, user_inside_uid(b), user_inside_gid(b)) < 0 ||
	    mo_chmod_fd(home, 0700) < 0)
		report_failure(errno, "give %s to the user", b->home);
}
