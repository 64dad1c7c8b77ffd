/* See ending.h. */
#include "agent/ending.h"

#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

/* a controller that does not answer holds up no shutdown, */
#define END_US 5000000
#define ASK_US 1000000 /* nor does a systemd that does not */
#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"

static void end_now(void *arg)
{
	struct manager *m = arg;

	mo_loop_end(m->loop, 0);
}

static bool all_sent(const struct manager *m)
{
	for (size_t i = 0; i < m->n_steps; i++)
		if (!m->steps[i]->gone)
			return false;
	return !agent_core_has_urgent(m->core) && (!m->end.leaving || m->end.leaving_sent);
}

static void end_or_tell(struct manager *m)
{
	if (!m->end.leaving || all_sent(m) ||
	    (!m->end.timer && mo_timer_new(m->loop, end_now, m, &m->end.timer) < 0))
		end_now(m);
	else
		mo_timer_in(m->end.timer, END_US);
}

static void state_known(struct manager *m, bool changed)
{
	if (changed)
		queue_event(m, &(struct agent_event){ .type = AE_CHECKED });
	if (!m->end.asking)
		return;
	m->end.asking = false;
	mo_timer_at(m->end.ask_timer, INT64_MAX);
	if (m->end.begun)
		end_or_tell(m);
	queue_event(m, &(struct agent_event){ .type = AE_TICK }); /* what waits is told */
}

static void on_no_answer(void *arg)
{
	state_known(arg, false);
}

static int on_state(sd_bus_message *message, void *arg, sd_bus_error *error)
{
	struct manager *m = arg;
	const char *state = NULL;
	bool leaving = m->end.leaving;

	if (!sd_bus_message_is_method_error(message, NULL) &&
	    sd_bus_message_read(message, "v", "s", &state) >= 0)
		leaving = mo_streq(state, "stopping");
	bool changed = leaving != m->end.leaving;
	m->end.leaving = leaving;
	m->end.leaving_sent &= leaving;
	if (changed)
		mo_log(MO_NOTICE, NULL, NULL,
		       leaving ? "this machine is going down: the controller is told, and its jobs "
				 "move"
			       : "this machine does not go down after all");
	state_known(m, changed);
	return 0;
}

static void ask_systemd(struct manager *m)
{
	m->end.state = sd_bus_slot_unref(m->end.state);
	if (sd_bus_call_method_async(m->end.bus, &m->end.state, SYSTEMD, SYSTEMD_PATH,
				     "org.freedesktop.DBus.Properties", "Get", on_state, m, "ss",
				     SYSTEMD_MANAGER, "SystemState") < 0)
		state_known(m, false);
}

void ending_ask(struct manager *m)
{
	if (!m->end.bus || m->end.asking ||
	    (!m->end.ask_timer && mo_timer_new(m->loop, on_no_answer, m, &m->end.ask_timer) < 0))
		return;
	m->end.asking = true;
	mo_timer_in(m->end.ask_timer, ASK_US);
	ask_systemd(m);
}

/* A shutdown ends the agent within milliseconds of its steps: systemd's signal that it begins
 * may not be here yet. */
void ending_begin(struct manager *m)
{
	if (m->end.begun)
		return;
	m->end.begun = true;
	ending_ask(m);
	if (!m->end.asking)
		end_or_tell(m);
}

/* A shutdown begins with a job for this target, whoever asked for it, and is given up by the
 * job's removal. */
static int on_job(sd_bus_message *message, void *arg, sd_bus_error *error)
{
	uint32_t id;
	const char *path, *unit;

	if (sd_bus_message_read(message, "uos", &id, &path, &unit) >= 0 &&
	    mo_streq(unit, "shutdown.target"))
		ask_systemd(arg);
	return 0;
}

void ending_check(struct manager *m)
{
	if (m->end.begun && !m->end.asking && all_sent(m))
		end_now(m);
}

int ending_watch(struct manager *m, sd_bus *bus)
{
	m->end.bus = bus;
	int r = sd_bus_match_signal_async(bus, &m->end.removed, SYSTEMD, SYSTEMD_PATH,
					  SYSTEMD_MANAGER, "JobRemoved", on_job, NULL, m);

	if (r >= 0)
		r = sd_bus_match_signal_async(bus, &m->end.added, SYSTEMD, SYSTEMD_PATH,
					      SYSTEMD_MANAGER, "JobNew", on_job, NULL, m);
	if (r >= 0)
		ask_systemd(m);
	return r;
}

void ending_unwatch(struct manager *m)
{
	m->end.removed = sd_bus_slot_unref(m->end.removed);
	m->end.added = sd_bus_slot_unref(m->end.added);
	m->end.state = sd_bus_slot_unref(m->end.state);
	m->end.bus = NULL;
}

void ending_done(struct manager *m)
{
	ending_unwatch(m);
	mo_timer_free(m->end.timer);
	mo_timer_free(m->end.ask_timer);
}
