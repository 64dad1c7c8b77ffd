/* Steps as transient systemd services over sd-bus (architecture.md section 6): the unit outlives
 * the agent, systemd kills what its main process leaves. The call is asynchronous; the job's end
 * (JobRemoved) tells whether stepd said READY=1. */
#include "agent/unit.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>
#include <unistd.h>
#include "agent/ending.h"
#include "agent/helper.h"
#include "agent/step_talk.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"

/* what primus-cli gives its containers; systemd's own default is half of it */
#define OPEN_FILES 1048576
#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"
#define CALL_TIMEOUT_US 20000000
/* what a supervisor needs behind the grace of its ranks: to kill, to prove, to write it down */
#define STOP_MARGIN_US 30000000ULL
#define STOP_LEAST_US 90000000ULL

/* One start under way. It finds its step by id: the step may be gone when the answer comes. */
struct unit_start {
	struct unit_starter *owner;
	int64_t job, attempt;
	char *unit;
	sd_bus_slot *slot;
};
struct unit_starter {
	struct starter starter; /* first: the one is the other */
	struct manager *m;
	sd_bus *bus;
	sd_bus_slot *removed;
	struct unit_start **starts;
	size_t n_starts;
	char *own_unit;
};

static void start_free(struct unit_start *s)
{
	sd_bus_slot_unref(s->slot);
	free(s->unit);
	free(s);
}

static void units_free(struct starter *s)
{
	struct unit_starter *u = (struct unit_starter *)s;

	for (size_t i = 0; i < u->n_starts; i++)
		start_free(u->starts[i]);
	free(u->starts);
	free(u->own_unit);
	ending_unwatch(u->m);
	sd_bus_slot_unref(u->removed);
	sd_bus_flush_close_unref(u->bus);
	free(u);
}

static void finish(struct unit_starter *u, struct unit_start *s, const char *problem)
{
	struct step_dir *d = step_dir_find(u->m, s->job, s->attempt);
	for (size_t i = 0; i < u->n_starts; i++)
		if (u->starts[i] == s) {
			memmove(&u->starts[i], &u->starts[i + 1],
				(u->n_starts - i - 1) * sizeof(*u->starts));
			u->n_starts--;
			break;
		}
	if (problem) /* nothing is started while the machine goes down */
		ending_ask(u->m);
	if (d)
		step_talk_started(d, problem);
	start_free(s);
}

static int on_removed(sd_bus_message *message, void *arg, sd_bus_error *error)
{
	struct unit_starter *u = arg;
	uint32_t id;
	const char *path, *unit, *result;
	int r = sd_bus_message_read(message, "uoss", &id, &path, &unit, &result);
	for (size_t i = 0; r >= 0 && i < u->n_starts; i++)
		if (mo_streq(u->starts[i]->unit, unit)) {
			_cleanup_(mo_freep) char *problem =
				mo_streq(result, "done")
					? NULL
					: mo_printf("unit %s: start %s; see `journalctl -u %s`",
						    unit, result, unit);
			finish(u, u->starts[i], problem);
			break;
		}
	return 0;
}

static int on_started(sd_bus_message *message, void *arg, sd_bus_error *error)
{
	struct unit_start *s = arg;
	const sd_bus_error *e = sd_bus_message_get_error(message);
	if (e) {
		_cleanup_(mo_freep) char *problem =
			mo_printf("unit %s could not be started: %s", s->unit,
				  e->message ? e->message : e->name);
		finish(s->owner, s, problem);
	}
	return 0;
}

static int add_property(sd_bus_message *m, const char *name, const char *type, const void *value)
{
	int r = sd_bus_message_open_container(m, 'r', "sv");
	if (r >= 0)
		r = sd_bus_message_append_basic(m, 's', name);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', type);
	if (r >= 0)
		r = sd_bus_message_append_basic(m, type[0], value);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int add_exec(sd_bus_message *m, const char *program, const char *dir)
{
	return sd_bus_message_append(m, "(sv)", "ExecStart", "a(sasb)", 1, program, 3, program,
				     "--dir", dir, 0);
}

static int add_environment(sd_bus_message *m)
{
	int r = sd_bus_message_open_container(m, 'r', "sv");
	if (r >= 0)
		r = sd_bus_message_append_basic(m, 's', "Environment");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', "as");
	if (r >= 0)
		r = sd_bus_message_append_strv(m, (char **)(uintptr_t)child_environment());
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* systemd kills what has not ended by then; stop.grace is the ranks' own time. */
static uint64_t stop_timeout(const struct launch *l)
{
	uint64_t grace = (uint64_t)MO_MAX(l->stop_grace_us, 0);

	return grace > UINT64_MAX / 2 ? UINT64_MAX : MO_MAX(grace + STOP_MARGIN_US, STOP_LEAST_US);
}

/* After the agent: only the order in a shutdown follows from that. Steps end first, and the
 * agent is still there to tell what they saved and that they are gone. No PartOf= or BindsTo=
 * the agent: its restart must not touch steps. */
static int add_properties(sd_bus_message *m, const struct unit_starter *u, const struct step_dir *d)
{
	static const struct {
		const char *name, *value;
	} strings[] = {
		{ "Type", "notify" },
		{ "Slice", "moe.slice" },
		{ "KillMode", "mixed" },
		{ "OOMPolicy", "continue" },
		{ "CollectMode", "inactive-or-failed" },
		{ "NotifyAccess", "main" },
	};
	const int yes = 1;
	const uint64_t unlimited = UINT64_MAX, open_files = OPEN_FILES,
		       timeout = stop_timeout(&d->spool.launch);
	_cleanup_(mo_freep) char *description = mo_printf("moectl step j-%lld attempt %lld",
							  (long long)d->job, (long long)d->attempt);
	int r = add_property(m, "Description", "s", description);
	for (size_t i = 0; i < ELEMENTSOF(strings) && r >= 0; i++)
		r = add_property(m, strings[i].name, "s", strings[i].value);
	if (r >= 0)
		r = add_property(m, "Delegate", "b", &yes);
	if (r >= 0)
		r = add_property(m, "LimitMEMLOCK", "t", &unlimited);
	if (r >= 0)
		r = add_property(m, "LimitNOFILE", "t", &open_files);
	if (r >= 0)
		r = add_property(m, "TimeoutStopUSec", "t", &timeout);
	if (r >= 0 && u->own_unit)
		r = sd_bus_message_append(m, "(sv)", "After", "as", 1, u->own_unit);
	if (r >= 0)
		r = add_environment(m);
	return r < 0 ? r : add_exec(m, u->m->stepd_path, d->path);
}

static int start(struct unit_starter *u, struct step_dir *d, struct mo_error *err)
{
	sd_bus_message *m = NULL;
	struct unit_start *s = mo_alloc(sizeof(*s));
	*s = (struct unit_start){ .owner = u, .job = d->job, .attempt = d->attempt };
	/* The step id is unique for ever: a unit name is never reused while systemd still
	 * remembers it. */
	s->unit = mo_printf("moe-step-%s.service", d->spool.step_id);
	int r = sd_bus_message_new_method_call(u->bus, &m, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER,
					       "StartTransientUnit");
	if (r >= 0)
		r = sd_bus_message_append(m, "ss", s->unit, "fail");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "(sv)");
	if (r >= 0)
		r = add_properties(m, u, d);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	if (r >= 0)
		r = sd_bus_call_async(u->bus, &s->slot, m, on_started, s, CALL_TIMEOUT_US);
	sd_bus_message_unref(m);
	if (r < 0) {
		start_free(s);
		return mo_error_set(err, r, "systemd: StartTransientUnit: %s", strerror(-r));
	}
	*MO_GROW(u->starts, u->n_starts) = s;
	return 0;
}

static void units_start(struct starter *s, struct step_dir *d)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = start((struct unit_starter *)s, d, &err);

	if (r < 0)
		step_talk_start_failed(d, mo_error_text(&err, r));
}

int unit_starter_new(struct manager *m, struct starter **ret, struct mo_error *err)
{
	if (mo_streq(m->config->use_systemd, "no") ||
	    (mo_streq(m->config->use_systemd, "auto") && (sd_booted() <= 0 || mo_uid() != 0)))
		return 1;
	struct unit_starter *u = mo_alloc(sizeof(*u));
	u->starter = (struct starter){ .start = units_start, .free = units_free, .in_units = true };
	u->m = m;
	int r = sd_bus_open_system(&u->bus);
	if (r >= 0)
		r = sd_bus_attach_event(u->bus, m->loop, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0) /* before the first start, or its end could be missed */
		r = sd_bus_match_signal_async(u->bus, &u->removed, SYSTEMD, SYSTEMD_PATH,
					      SYSTEMD_MANAGER, "JobRemoved", on_removed, NULL, u);
	if (r >= 0)
		r = sd_bus_call_method_async(u->bus, NULL, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER,
					     "Subscribe", NULL, NULL, "");
	if (r >= 0)
		r = ending_watch(m, u->bus);
	if (r < 0) {
		units_free(&u->starter);
		if (mo_streq(m->config->use_systemd, "auto"))
			return 1;
		return mo_error_set(err, r, "use_systemd: the system bus cannot be used: %s",
				    strerror(-r));
	}
	if (sd_pid_get_unit(0, &u->own_unit) < 0) /* not under a unit: no order to keep */
		u->own_unit = NULL;
	*ret = &u->starter;
	return 0;
}
