/* See owner.h. */
#include "daemon/owner.h"
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int owner_become(const char *dir, struct mo_error *err)
{
	struct stat st;

	if (geteuid() != 0 || stat(dir, &st) < 0 || st.st_uid == 0)
		return 0;
	if (setgroups(0, NULL) == 0 && setresgid(st.st_gid, st.st_gid, st.st_gid) == 0 &&
	    setresuid(st.st_uid, st.st_uid, st.st_uid) == 0)
		return 0;
	return mo_error_set(err, -errno,
			    "%s: it belongs to user %u, which root could not become: %s", dir,
			    st.st_uid, strerror(errno));
}
