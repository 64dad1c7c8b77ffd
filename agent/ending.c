/* See ending.h. */
#include "agent/ending.h"

#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

/* a controller that does not answer holds up no shutdown, */
#define END_US 5000000
#define ASK_US 1000000 /* nor does a systemd that does not */

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
	queue_event(m, &(struct agent_event){ .type = AE_TICK }); /* what waits is reported */
}

static void on_no_answer(void *arg)
{
	state_known(arg, false);
}

static void on_answer(void *arg, enum shutdown_answer answer)
{
	struct manager *m = arg;
	bool leaving = answer == SHUTDOWN_UNKNOWN ? m->end.leaving : answer == SHUTDOWN_UNDER_WAY;
	bool changed = leaving != m->end.leaving;

	m->end.leaving = leaving;
	m->end.leaving_sent &= leaving;
	if (changed)
		mo_log(MO_NOTICE, NULL, NULL,
		       leaving ? "this machine is going down: the controller knows, and its jobs "
				 "move"
			       : "this machine does not go down after all");
	state_known(m, changed);
}

static void ask_systemd(void *arg)
{
	struct manager *m = arg;

	if (shutdown_ask(m->end.shutdown) < 0)
		state_known(m, false);
}

void ending_ask(struct manager *m)
{
	if (!m->end.shutdown || m->end.asking ||
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

void ending_check(struct manager *m)
{
	if (m->end.begun && !m->end.asking && all_sent(m))
		end_now(m);
}

int ending_watch(struct manager *m, sd_bus *bus)
{
	int r = shutdown_watch(bus, ask_systemd, on_answer, m, &m->end.shutdown);

	if (r >= 0)
		ask_systemd(m);
	return r;
}

void ending_unwatch(struct manager *m)
{
	m->end.shutdown = shutdown_unwatch(m->end.shutdown);
}

void ending_done(struct manager *m)
{
	ending_unwatch(m);
	mo_timer_free(m->end.timer);
	mo_timer_free(m->end.ask_timer);
}
