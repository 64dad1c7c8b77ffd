/* See shutdown.h. */
#include "agent/shutdown.h"

#include "lib/base/util.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"

struct shutdown_watch {
	sd_bus *bus;
	sd_bus_slot *state, *added, *removed;
	void (*job)(void *arg);
	void (*answer)(void *arg, enum shutdown_answer answer);
	void *arg;
};

static int on_state(sd_bus_message *message, void *arg, sd_bus_error *error)
{
	struct shutdown_watch *w = arg;
	const char *state = NULL;
	enum shutdown_answer answer = SHUTDOWN_UNKNOWN;

	if (!sd_bus_message_is_method_error(message, NULL) &&
	    sd_bus_message_read(message, "v", "s", &state) >= 0)
		answer = mo_streq(state, "stopping") ? SHUTDOWN_UNDER_WAY : SHUTDOWN_NONE;
	w->answer(w->arg, answer);
	return 0;
}

static int on_job(sd_bus_message *message, void *arg, sd_bus_error *error)
{
	struct shutdown_watch *w = arg;
	uint32_t id;
	const char *path, *unit;

	if (sd_bus_message_read(message, "uos", &id, &path, &unit) >= 0 &&
	    mo_streq(unit, "shutdown.target"))
		w->job(w->arg);
	return 0;
}

int shutdown_ask(struct shutdown_watch *w)
{
	w->state = sd_bus_slot_unref(w->state);
	return sd_bus_call_method_async(w->bus, &w->state, SYSTEMD, SYSTEMD_PATH,
					"org.freedesktop.DBus.Properties", "Get", on_state, w, "ss",
					SYSTEMD_MANAGER, "SystemState");
}

int shutdown_watch(sd_bus *bus, void (*job)(void *arg),
		   void (*answer)(void *arg, enum shutdown_answer answer), void *arg,
		   struct shutdown_watch **ret)
{
	struct shutdown_watch *w = mo_alloc(sizeof(*w));

	*w = (struct shutdown_watch){ .bus = bus, .job = job, .answer = answer, .arg = arg };
	int r = sd_bus_match_signal_async(bus, &w->removed, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER,
					  "JobRemoved", on_job, NULL, w);
	if (r >= 0)
		r = sd_bus_match_signal_async(bus, &w->added, SYSTEMD, SYSTEMD_PATH,
					      SYSTEMD_MANAGER, "JobNew", on_job, NULL, w);
	if (r < 0)
		shutdown_unwatch(w);
	else
		*ret = w;
	return r < 0 ? r : 0;
}

struct shutdown_watch *shutdown_unwatch(struct shutdown_watch *w)
{
	if (!w)
		return NULL;
	sd_bus_slot_unref(w->removed);
	sd_bus_slot_unref(w->added);
	sd_bus_slot_unref(w->state);
	free(w);
	return NULL;
}
