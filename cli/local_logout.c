/* Whether a logout ends what is started now. Daemons leave their terminal, but not the control
 * group of the login: systemd ends a user's manager with everything below it after the last
 * logout, unless the user lingers, and a session's processes where logind is told to
 * (KillUserProcesses). */
#include "cli/local_logout.h"

#include <dlfcn.h>
#include <pwd.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>
#include "lib/base/fd.h"

#define ASK_US 1000000
#define LOGIND "org.freedesktop.login1"

const char *logout_note(const char *cgroup, bool lingers, bool kills)
{
	if (strstr(cgroup, "/user@") && !lingers)
		return "a logout ends this cluster: it runs below your user manager; `loginctl "
		       "enable-linger` keeps that running";
	if (strstr(cgroup, "/session-") && kills)
		return "a logout ends this cluster: this machine ends what a session leaves "
		       "(KillUserProcesses); `loginctl enable-linger`, then start it with "
		       "`systemd-run --user --scope moectl local up`";
	return NULL;
}

static bool is_in(char **names, const char *name)
{
	for (size_t i = 0; names && names[i]; i++)
		if (mo_streq(names[i], name))
			return true;
	return false;
}

static void names_freep(char ***names)
{
	for (size_t i = 0; *names && (*names)[i]; i++)
		free((*names)[i]);
	free(*names);
}

/* libsystemd with what it needs takes half a millisecond to load, which no other verb has use
 * for (docs/decisions/006). NULL where there is none: then there is no logind either. */
#define BUS_CALLS(X) \
	X(open_system) \
	X(set_method_call_timeout) X(get_property_trivial) X(get_property_strv) X(flush_close_unref)
#define BUS_MEMBER(name) __typeof__(sd_bus_##name) *name;
struct bus_calls {
	BUS_CALLS(BUS_MEMBER)
};

static const struct bus_calls *load_bus(void)
{
	static struct bus_calls calls;
	void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library)
		return NULL;
#define BUS_SYMBOL(name) \
	calls.name = (__typeof__(sd_bus_##name) *)dlsym(library, "sd_bus_" #name); \
	if (!calls.name) \
		return NULL;
	BUS_CALLS(BUS_SYMBOL)
	return &calls;
}

static bool ask_logind(const struct bus_calls *call, sd_bus **bus, const char *user)
{
	_cleanup_(names_freep) char **only = NULL, **but = NULL;
	int kills = 0;
	if (call->open_system(bus) < 0 || call->set_method_call_timeout(*bus, ASK_US) < 0 ||
	    call->get_property_trivial(*bus, LOGIND, "/org/freedesktop/login1", LOGIND ".Manager",
				       "KillUserProcesses", NULL, 'b', &kills) < 0)
		return false;
	(void)call->get_property_strv(*bus, LOGIND, "/org/freedesktop/login1", LOGIND ".Manager",
				      "KillOnlyUsers", NULL, &only);
	(void)call->get_property_strv(*bus, LOGIND, "/org/freedesktop/login1", LOGIND ".Manager",
				      "KillExcludeUsers", NULL, &but);
	return kills && !is_in(but, user) && (!only || !only[0] || is_in(only, user));
}

/* What logind says it does with this user's processes; without an answer the default, which is
 * nothing. */
static bool logind_kills(const char *user)
{
	const struct bus_calls *call = load_bus();
	sd_bus *bus = NULL;
	if (!call)
		return false;
	bool kills = ask_logind(call, &bus, user);
	call->flush_close_unref(bus);
	return kills;
}

const char *local_logout_note(void)
{
	_cleanup_(mo_buf_done) struct mo_buf cgroup = { 0 };
	const struct passwd *pw = getpwuid(geteuid());
	if (!pw || mo_read_file("/proc/self/cgroup", 65536, &cgroup) < 0 || !cgroup.data)
		return NULL;
	_cleanup_(mo_freep) char *linger = mo_printf("/var/lib/systemd/linger/%s", pw->pw_name);
	return logout_note(cgroup.data, access(linger, F_OK) == 0,
			   strstr(cgroup.data, "/session-") && logind_kills(pw->pw_name));
}
