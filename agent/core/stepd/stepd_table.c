/* See stepd_table.h. */
#include "agent/core/stepd/stepd_table.h"

#include "agent/core/stepd/stepd_end.h"
#include "agent/core/stepd/stepd_facts.h"
#include "agent/core/stepd/stepd_start.h"

/* What an event does, and how docs/states.md says it. */
struct cell {
	stepd_fn fn;
	const char *text;
};

static const struct cell launch = { stepd_on_launch,
				    "namespace where the step gets one, else as that event" };
static const struct cell namespace = { stepd_on_namespace,
				       "made, or the step does without: preparing where there is "
				       "engine.prepare, else as prepared; "
				       "it is not what was asked: refused, kill, down" };
static const struct cell prepared = {
	stepd_on_prepared,
	"it ended with 0: ports, or without any to hold as ports held; else: refused, kill, down"
};
static const struct cell ports = { stepd_on_ports,
				   "held: reading where files of variables or the engine's "
				   "configuration are to be read, "
				   "else up, and all ranks are forked; in use: refused, gone" };
static const struct cell config_read = {
	stepd_on_config_read,
	"read, or not to be had: up, all ranks are forked; else: refused, kill, down"
};
static const struct cell started = {
	stepd_on_started, "started; running with the last one, and the ports are let go"
};
static const struct cell started_late = { stepd_on_started_late,
					  "started, and the kill begins anew" };
static const struct cell start_failed = { stepd_on_start_failed, "refused, kill, down" };
static const struct cell start_failed_late = { stepd_on_start_failed_late, "it counts as ended" };
static const struct cell bind_failed = { stepd_on_bind_failed, "refused, kill, down" };
static const struct cell binding = { stepd_on_binding, "reported" };
static const struct cell rank_exit = { stepd_on_exit_of_rank,
				       "reported; after the last one: kill, down" };
static const struct cell exit_late = { stepd_on_exit_late, "reported" };
static const struct cell stop_early = { stepd_on_stop_early, "gone" };
static const struct cell stop_unforked = { stepd_on_stop_unforked, "kill, down" };
static const struct cell stop = { stepd_on_stop, "signal to the ranks, stopping" };
static const struct cell stop_again = {
	stepd_on_stop_again,
	"the earlier end of grace counts: a repeated order never gives more time"
};
static const struct cell kill_early = { stepd_on_kill_early, "gone" };
static const struct cell kill_all = { stepd_on_kill, "kill, down" };
static const struct cell kill_again = { stepd_on_kill, "kill again" };
static const struct cell empty = {
	stepd_on_empty, "who started and has no exit is reported with cause unknown; gone"
};
static const struct cell stuck = { stepd_on_stuck, "reported, once of each" };
static const struct cell tick_preparing = {
	stepd_on_tick_preparing, "engine.prepare has had its time: refused, kill, down"
};
static const struct cell tick = { stepd_on_tick, "a sample that waited is reported" };
static const struct cell tick_stopping = {
	stepd_on_tick_stopping, "a sample that waited is reported; at the end of grace: kill, down"
};
static const struct cell tick_down = {
	stepd_on_tick_down,
	"a sample that waited is reported; kill again, each time after twice as long"
};
static const struct cell sample = { stepd_core_on_sample, "reported once of each iteration" };
static const struct cell phase = { stepd_core_on_phase,
				   "noted when the lowest rank that reports any changes it" };
static const struct cell ready = { stepd_core_on_ready, "as a phase, `train` when it names none" };
static const struct cell checkpoint = { stepd_core_on_checkpoint, "reported once" };
static const struct cell saving = { stepd_core_on_saving, "reported once of each place" };
static const struct cell resumed = { stepd_core_on_resumed, "reported once" };

#define FACTS \
	[SE_SAMPLE] = &sample, [SE_PHASE] = &phase, [SE_CHECKPOINT] = &checkpoint, \
	[SE_SAVING] = &saving, [SE_RESUMED] = &resumed, [SE_READY] = &ready

/* NULL: it is ignored. */
static const struct cell *const table[_STATE_N][_SE_N] = {
	[NEW] = {
		[SE_LAUNCH] = &launch,
		[SE_STOP] = &stop_early, [SE_KILL] = &kill_early, [SE_STUCK] = &stuck,
	},
	[NAMESPACE] = {
		[SE_NAMESPACE] = &namespace,
		[SE_STOP] = &stop_unforked, [SE_KILL] = &kill_all, [SE_STUCK] = &stuck,
	},
	[PREPARING] = {
		[SE_PREPARED] = &prepared,
		[SE_STOP] = &stop_unforked, [SE_KILL] = &kill_all, [SE_STUCK] = &stuck,
		[SE_TICK] = &tick_preparing,
	},
	[PORTS] = {
		[SE_PORTS] = &ports,
		[SE_STOP] = &stop_early, [SE_KILL] = &kill_early, [SE_STUCK] = &stuck,
	},
	[READING] = {
		[SE_CONFIG_READ] = &config_read,
		[SE_STOP] = &stop_unforked, [SE_KILL] = &kill_all, [SE_STUCK] = &stuck,
	},
	[UP] = {
		[SE_STARTED] = &started, [SE_START_FAILED] = &start_failed,
		[SE_BIND_FAILED] = &bind_failed, [SE_BINDING] = &binding, [SE_EXIT] = &rank_exit,
		[SE_STOP] = &stop, [SE_KILL] = &kill_all, [SE_EMPTY] = &empty, [SE_STUCK] = &stuck,
		[SE_TICK] = &tick, FACTS,
	},
	[STOPPING] = {
		[SE_STARTED] = &started, [SE_START_FAILED] = &start_failed,
		[SE_BIND_FAILED] = &bind_failed, [SE_EXIT] = &rank_exit,
		[SE_STOP] = &stop_again, [SE_KILL] = &kill_all, [SE_EMPTY] = &empty,
		[SE_STUCK] = &stuck, [SE_TICK] = &tick_stopping, FACTS,
	},
	[DOWN] = {
		[SE_STARTED] = &started_late, [SE_START_FAILED] = &start_failed_late,
		[SE_EXIT] = &exit_late,
		[SE_KILL] = &kill_again, [SE_EMPTY] = &empty, [SE_STUCK] = &stuck,
		[SE_TICK] = &tick_down, FACTS,
	},
};

static const char *const state_names[_STATE_N] = {
	[NEW] = "new",           [NAMESPACE] = "namespace", [PREPARING] = "preparing",
	[PORTS] = "ports",       [READING] = "reading",     [UP] = "up",
	[STOPPING] = "stopping", [DOWN] = "down",           [GONE] = "gone",
};

static const char *const event_names[_SE_N] = {
	[SE_LAUNCH] = "launch",
	[SE_NAMESPACE] = "the namespace of the step is made, or cannot be",
	[SE_PREPARED] = "engine.prepare ended",
	[SE_PORTS] = "ports",
	[SE_CONFIG_READ] = "the engine's configuration was read",
	[SE_STARTED] = "a rank started",
	[SE_START_FAILED] = "a rank could not be started",
	[SE_BIND_FAILED] = "a rank is bound otherwise (`strict`)",
	[SE_BINDING] = "a later check of a rank's threads",
	[SE_EXIT] = "a rank ended",
	[SE_STOP] = "stop",
	[SE_KILL] = "kill",
	[SE_EMPTY] = "no process is left",
	[SE_STUCK] = "a process cannot be killed",
	[SE_TICK] = "time",
	[SE_SAMPLE] = "a sample",
	[SE_PHASE] = "a phase",
	[SE_CHECKPOINT] = "a checkpoint",
	[SE_SAVING] = "a save begins",
	[SE_RESUMED] = "resumed",
	[SE_READY] = "ready",
};

static const struct cell *cell_of(int state, int event)
{
	bool known = state >= 0 && state < _STATE_N && event >= 0 && event < _SE_N;

	return known ? table[state][event] : NULL;
}

stepd_fn stepd_table_fn(int state, int event)
{
	const struct cell *c = cell_of(state, event);

	return c ? c->fn : NULL;
}

const char *stepd_state_name(int state)
{
	return state >= 0 && state < _STATE_N ? state_names[state] : NULL;
}

const char *stepd_event_name(int event)
{
	return event >= 0 && event < _SE_N ? event_names[event] : NULL;
}

const char *stepd_follows(int state, int event)
{
	const struct cell *c = cell_of(state, event);

	return c ? c->text : NULL;
}
