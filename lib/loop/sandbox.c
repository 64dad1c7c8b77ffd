/* See sandbox.h. */
#include "lib/loop/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "lib/base/fd.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define MANAGER "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
#define SERVICE "org.freedesktop.systemd1.Service"

void mo_sandbox_done(struct mo_sandbox *s)
{
	for (size_t i = 0; i < s->n_writable; i++)
		free(s->writable[i]);
	for (size_t i = 0; i < s->n_made; i++)
		free(s->made[i]);
	free(s->writable);
	free(s->made);
	free(s->unit);
	free(s->user);
	free(s->protect_system);
	free(s->protect_home);
	*s = (struct mo_sandbox){ 0 };
}

static char *get_text(sd_bus *bus, const char *path, const char *name)
{
	char *text = NULL;

	if (sd_bus_get_property_string(bus, SYSTEMD, path, SERVICE, name, NULL, &text) < 0 ||
	    !*text) {
		free(text);
		return NULL;
	}
	return text;
}

/* Appended, each below base. "-" in front: need not be there. */
static void add_list(sd_bus *bus, const char *path, const char *name, const char *base,
		     char ***list, size_t *n)
{
	char **words = NULL;

	if (sd_bus_get_property_strv(bus, SYSTEMD, path, SERVICE, name, NULL, &words) < 0)
		return;
	for (size_t i = 0; words && words[i]; i++) {
		*MO_GROW(*list, *n) = mo_printf("%s%s", base, words[i] + (words[i][0] == '-'));
		free(words[i]);
	}
	free(words);
}

/* Whether ExecStart= begins with the file that this process runs. */
static bool runs_us(sd_bus *bus, const char *path)
{
	sd_bus_message *m = NULL;
	const char *program = NULL;
	struct stat ours, theirs;
	bool same = false;

	if (sd_bus_get_property(bus, SYSTEMD, path, SERVICE, "ExecStart", NULL, &m,
				"a(sasbttttuii)") >= 0 &&
	    sd_bus_message_enter_container(m, 'a', "(sasbttttuii)") > 0 &&
	    sd_bus_message_enter_container(m, 'r', "sasbttttuii") > 0 &&
	    sd_bus_message_read(m, "s", &program) > 0)
		same = stat("/proc/self/exe", &ours) == 0 && stat(program, &theirs) == 0 &&
		       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
	sd_bus_message_unref(m);
	return same;
}

static void read_unit(sd_bus *bus, const char *path, struct mo_sandbox *s)
{
	int private_tmp = 0;

	s->user = get_text(bus, path, "User");
	s->protect_system = get_text(bus, path, "ProtectSystem");
	s->protect_home = get_text(bus, path, "ProtectHome");
	sd_bus_get_property_trivial(bus, SYSTEMD, path, SERVICE, "PrivateTmp", NULL, 'b',
				    &private_tmp);
	s->private_tmp = private_tmp;
	s->capabilities = UINT64_MAX;
	sd_bus_get_property_trivial(bus, SYSTEMD, path, SERVICE, "CapabilityBoundingSet", NULL, 't',
				    &s->capabilities);
	add_list(bus, path, "ReadWritePaths", "", &s->writable, &s->n_writable);
	add_list(bus, path, "StateDirectory", "/var/lib/", &s->made, &s->n_made);
	add_list(bus, path, "RuntimeDirectory", "/run/", &s->made, &s->n_made);
}

/* Where no D-Bus runs, root may speak to systemd itself, as systemctl does. 1: nobody is there to
 * ask. */
static int open_bus(sd_bus **ret)
{
	int r = sd_bus_open_system(ret);

	if (r != -ENOENT && r != -ECONNREFUSED)
		return r;
	r = sd_bus_new(ret);
	if (r >= 0)
		r = sd_bus_set_address(*ret, "unix:path=/run/systemd/private");
	if (r >= 0)
		r = sd_bus_start(*ret);
	return r < 0 && geteuid() != 0 ? 1 : r;
}

int mo_sandbox_of(const char *unit, struct mo_sandbox *ret, struct mo_error *err)
{
	sd_bus *bus = NULL;
	sd_bus_message *m = NULL;
	const char *path = NULL;

	*ret = (struct mo_sandbox){ 0 };
	if (sd_booted() <= 0)
		return 0;
	int r = open_bus(&bus);
	bool nobody = r == 1;
	if (r >= 0 && !nobody)
		r = sd_bus_call_method(bus, SYSTEMD, MANAGER, "LoadUnit", NULL, &m, "s", unit);
	if (r >= 0 && !nobody)
		r = sd_bus_message_read(m, "o", &path);
	if (r < 0)
		r = mo_error_set(err, r, "systemd does not tell what %s may do: %s", unit,
				 strerror(-r));
	else if (!nobody && runs_us(bus, path)) {
		ret->unit = mo_strdup(unit);
		read_unit(bus, path, ret);
	}
	sd_bus_message_unref(m);
	sd_bus_flush_close_unref(bus);
	return r < 0 ? r : 0;
}

/* Root without a capability is refused like anybody. */
static int drop_capabilities(uint64_t retained)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &head, sets) < 0)
		return -errno;
	for (size_t i = 0; i < 2; i++) {
		sets[i].effective &= (uint32_t)(retained >> (32 * i));
		sets[i].permitted &= (uint32_t)(retained >> (32 * i));
	}
	return syscall(SYS_capset, &head, sets) < 0 ? -errno : 0;
}

int mo_sandbox_become(const struct mo_sandbox *s, struct mo_error *err)
{
	const struct passwd *pw;

	if (!s->unit || geteuid() != 0)
		return 0;
	if (!s->user) {
		int r = drop_capabilities(s->capabilities);
		return r < 0 ? mo_error_set(err, r, "capabilities of %s: %s", s->unit, strerror(-r))
			     : 0;
	}
	pw = getpwnam(s->user);
	if (!pw)
		return mo_error_set(err, -ENOENT, "%s: there is no user %s: run systemd-sysusers",
				    s->unit, s->user);
	if (initgroups(s->user, pw->pw_gid) < 0 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
		return mo_error_set(err, -errno, "becoming user %s of %s: %s", s->user, s->unit,
				    strerror(errno));
	return 0;
}

static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/' || n == 1);
}

static bool below_any(const char *path, const char *const *dirs)
{
	while (*dirs && !below(path, *dirs))
		dirs++;
	return *dirs;
}

static bool in_list(const char *path, char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (below(path, list[i]))
			return true;
	return false;
}

static bool is(const char *value, const char *word)
{
	return value && strcmp(value, word) == 0;
}

static const char *const homes[] = { "/home", "/root", "/run/user", NULL };
static const char *const tmps[] = { "/tmp", "/var/tmp", NULL };
static const char *const system_dirs[] = { "/usr", "/boot", "/efi", NULL };

/* The option of the unit for which path is not there at all; NULL: it is. */
static const char *hidden_by(const struct mo_sandbox *s, const char *path)
{
	if ((is(s->protect_home, "yes") || is(s->protect_home, "tmpfs")) && below_any(path, homes))
		return "ProtectHome=";
	return s->private_tmp && below_any(path, tmps) ? "PrivateTmp=" : NULL;
}

/* The option of the unit by which path can only be read; NULL: none. */
static const char *guarded_by(const struct mo_sandbox *s, const char *path)
{
	if (in_list(path, s->writable, s->n_writable) || in_list(path, s->made, s->n_made))
		return NULL;
	if (is(s->protect_home, "read-only") && below_any(path, homes))
		return "ProtectHome=";
	if (!s->protect_system || is(s->protect_system, "no"))
		return NULL;
	if (is(s->protect_system, "strict") || below_any(path, system_dirs) ||
	    (is(s->protect_system, "full") && below(path, "/etc")))
		return "ProtectSystem=";
	return NULL;
}

static const char *who(const struct mo_sandbox *s)
{
	return s->user ? s->user : geteuid() == 0 ? "root" : "this user";
}

/* May it be made, or written to? Of what is not there yet, the nearest directory above counts. */
static int may_write(const char *dir)
{
	_cleanup_(mo_freep) char *path = mo_strdup(dir);

	while (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0) {
		char *slash = strrchr(path, '/');

		if (errno != ENOENT || !slash)
			return -errno;
		slash[slash == path] = '\0';
	}
	return 0;
}

int mo_sandbox_writes(const struct mo_sandbox *s, const char *option, const char *dir,
		      struct mo_error *err)
{
	if (!dir || !*dir)
		return 0;
	const char *by = s->unit ? hidden_by(s, dir) : NULL;
	if (by)
		return mo_error_set(err, -EACCES,
				    "%s: %s is not there for %s (%s): choose another place", option,
				    dir, s->unit, by);
	by = s->unit ? guarded_by(s, dir) : NULL;
	if (by)
		return mo_error_set(err, -EACCES,
				    "%s: %s may not write to %s (%s): allow it with "
				    "ReadWritePaths=%s in `systemctl edit %s`",
				    option, s->unit, dir, by, dir, s->unit);
	int r = in_list(dir, s->made, s->n_made) ? 0 : may_write(dir);
	return r < 0 ? mo_error_set(err, r, "%s: %s: %s may not write there: %s", option, dir,
				    who(s), strerror(-r))
		     : 0;
}

int mo_sandbox_reads(const struct mo_sandbox *s, const char *option, const char *file,
		     struct mo_error *err)
{
	if (!file || !*file)
		return 0;
	const char *by = s->unit ? hidden_by(s, file) : NULL;
	if (by)
		return mo_error_set(err, -EACCES,
				    "%s: %s is not there for %s (%s): choose another place", option,
				    file, s->unit, by);
	if (faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) < 0)
		return mo_error_set(err, -errno, "%s: %s: %s may not read it: %s", option, file,
				    who(s), strerror(errno));
	return 0;
}
