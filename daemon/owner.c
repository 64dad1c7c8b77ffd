/* See owner.h. */
#include "daemon/owner.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/options_args.h"
#include "lib/loop/sandbox.h"

int owner_become(const char *dir, struct mo_error *err)
{
	struct stat st;

	if (mo_uid() != 0 || mo_stat(dir, &st) < 0 || st.st_uid == 0)
		return 0;
	if (setgroups(0, NULL) == 0 && setresgid(st.st_gid, st.st_gid, st.st_gid) == 0 &&
	    setresuid(st.st_uid, st.st_uid, st.st_uid) == 0)
		return 0;
	return mo_error_set(err, -errno,
			    "%s: it belongs to user %u, which root could not become: %s", dir,
			    st.st_uid, strerror(errno));
}

/* As the unit is configured, whatever this command line says. A configuration that cannot be
 * read is nobody's. */
static bool of_the_unit(const char *dir)
{
	char *argv[] = { (char *)"moed", NULL };
	struct options configured;
	int r = mo_options_args(&options_table, "moed", MO_SYSCONFDIR "/moe/moed.yaml", 1, argv,
				&configured, NULL);
	bool same = r == MO_ARGS_RUN && mo_streq(configured.state_dir, dir);

	mo_options_done(&options_table, &configured);
	return same;
}

/* Directories above it are everybody's to pass. */
static int make_above(const char *dir)
{
	_cleanup_(mo_freep) char *above = mo_strdup(dir);
	char *slash = strrchr(above, '/');

	if (!slash || slash == above)
		return 0;
	*slash = '\0';
	return mo_mkdir_p(above, 0755, false);
}

static int give(const char *dir, const struct passwd *pw)
{
	mode_t before = umask(022);
	int r = make_above(dir);

	umask(before);
	if (r < 0)
		return r;
	if (mo_mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	return mo_chown(dir, pw->pw_uid, pw->pw_gid) < 0 ? -errno : 0;
}

int owner_make(const struct options *o, struct mo_error *err)
{
	_cleanup_(mo_sandbox_done) struct mo_sandbox unit = { 0 };
	const char *dir = o->state_dir;
	const struct passwd *pw;
	struct stat st;
	int r = 0;

	if (mo_uid() != 0 || (mo_stat(dir, &st) == 0 && st.st_uid != 0) || !of_the_unit(dir))
		return owner_become(dir, err);
	if ((r = mo_sandbox_of("moed.service", &unit, err)) < 0 || !unit.user)
		return r;
	pw = getpwnam(unit.user);
	if (!pw)
		return mo_error_set(err, -ENOENT, "%s: there is no user %s: run systemd-sysusers",
				    unit.unit, unit.user);
	r = give(dir, pw);
	return r < 0 ? mo_error_set(err, r, "%s: it cannot be made user %s's, as whom %s runs: %s",
				    dir, unit.user, unit.unit, strerror(-r))
		     : owner_become(dir, err);
}
